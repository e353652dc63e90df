import { Cluster } from '../cluster.js';
import { gapsOf, overlapOf, seededRandom, spreadOf } from '../../shared/measure.js';
import {
  count,
  judged,
  ms,
  noted,
  percent,
  seconds,
  type Scenario,
} from '../../shared/scenario.js';

const most = 7;
const queue = 'few';

export const concurrency: Scenario = {
  name: 'concurrency',
  about: 'max_concurrency 7 with 3 servers and 20 workers of 5 slots, calls of 50 to 150 ms',
  run: async (lab) => {
    await using cluster = await Cluster.start(lab.postgresUrl, { servers: 3, ready: 'redis' });
    await cluster.put(queue, { maxConcurrency: most });
    const random = seededRandom(1);
    const length = lab.size(2_000, 200);
    const holdsMs = Array.from({ length }, () => Math.round(50 + random() * 100));
    await cluster.submit(
      holdsMs.map((hold_ms) => ({ taskType: 'call', queue, parameters: { hold_ms } })),
    );
    await cluster.startWorkers({ workers: 20, concurrency: 5 });
    await lab.progress.until('ended', length, async () => length - (await cluster.countLiving()));

    const { calls } = cluster.standIn;
    const lastBegan = Math.max(...calls.map(({ receivedAt }) => receivedAt));
    const atService = overlapOf(
      calls.map(({ receivedAt, answeredAt }) => ({
        from: receivedAt,
        to: answeredAt ?? receivedAt,
      })),
      most,
      lastBegan,
    );
    const held = await cluster.database.query<{ from: number; to: number }>(`
      select (extract(epoch from started_at) * 1000)::float8 as from,
        (extract(epoch from ended_at) * 1000)::float8 as to
      from sluice.task_history where started_at is not null`);
    const atClaim = overlapOf(held, most, Math.max(...held.map(({ from }) => from)));
    const gap = spreadOf(gapsOf(held, most));
    const idealMs = holdsMs.reduce((sum, hold) => sum + hold, 0) / most;
    const tookMs = lastBegan - Math.min(...calls.map(({ receivedAt }) => receivedAt));
    return [
      judged(
        {
          what: 'calls at once at the service',
          measured: count(atService.most),
          numbers: { most: atService.most, calls: calls.length },
        },
        `≤ ${most}`,
        atService.most <= most && calls.length === length,
      ),
      judged(
        {
          what: 'claims at once in Postgres',
          measured: count(atClaim.most),
          numbers: { most: atClaim.most },
        },
        `≤ ${most}`,
        atClaim.most <= most,
      ),
      noted({
        what: `fewer than ${most} while work waited, of the time: held by workers; at the service`,
        measured:
          `${percent(atClaim.shareBelow)} (on average ${atClaim.average.toFixed(2)}); ` +
          `${percent(atService.shareBelow)} (${atService.average.toFixed(2)})`,
        numbers: {
          claimShareBelow: atClaim.shareBelow,
          claimAverage: atClaim.average,
          serviceShareBelow: atService.shareBelow,
          serviceAverage: atService.average,
        },
      }),
      noted({
        what: 'a slot that fell free is held again after: median; p99',
        measured: `${ms(gap.median)}; ${ms(gap.p99)}`,
        numbers: { gapMedianMs: gap.median, gapP99Ms: gap.p99 },
      }),
      noted({
        what: `${count(length)} calls; if ${most} were always under way`,
        measured: `${seconds(tookMs)}; ${seconds(idealMs)}`,
        numbers: { tookMs, idealMs },
      }),
    ];
  },
};
