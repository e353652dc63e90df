import { setTimeout as delay } from 'node:timers/promises';
import { askRedis } from '../../../test/support/services/redis-server.js';
import { Cluster, requests } from '../../limits/cluster.js';
import type { Claim } from '../../limits/claims.js';
import { mostInWindow, overlapOf } from '../../shared/measure.js';
import { count, judged, type Row, type Scenario } from '../../shared/scenario.js';

const [narrowed, paused, fresh] = ['narrowed', 'paused', 'fresh'];
/** Longer than a server takes to notice. */
const hungMs = 4_000;
const holdMs = 100;
const wide = { limits: [requests(4_000, 5)], maxConcurrency: 200 };
const narrow = { limits: [requests(50, 5)], maxConcurrency: 5 };
const fewSlots = 10;

export const hungRedis: Scenario = {
  name: 'hung-redis',
  about:
    '2 servers, 2 workers of 200 slots: limits and a pause are put while Redis hangs, and a new queue while it is full',
  run: async (lab) => {
    await using cluster = await Cluster.start(lab.postgresUrl, { servers: 2, ready: 'redis' });
    const length = lab.size(20_000, 5_000);
    // Takes whose answers were lost when Redis hung hold their slots for 10 s.
    const watchedMs = lab.size(20_000, 14_000);
    await cluster.put(narrowed, wide);
    for (const queue of [narrowed, paused]) await cluster.submit(calls(length, queue));
    await cluster.startWorkers({ workers: 2, concurrency: 200 });
    await lab.progress.wait('work', 2_000);
    const settings = await whileHung(cluster);
    const backAt = Date.now();
    await lab.progress.wait('Redis is back', watchedMs);
    const rows = hungRows(
      settings,
      (await cluster.claims()).filter(({ at }) => at >= backAt),
    );
    return [...rows, await fullRow(cluster, watchedMs)];
  },
};

interface Answers {
  readonly inForce: readonly boolean[];
}

async function whileHung(cluster: Cluster): Promise<Answers> {
  await cluster.hangRedis();
  await delay(hungMs);
  const put = await cluster.api(0).putQueue(narrowed, narrow);
  const pause = await cluster.api(1).pauseQueue(paused);
  await cluster.continueRedis();
  return { inForce: [put.inForce, pause.inForce] };
}

function hungRows({ inForce }: Answers, claims: readonly Claim[]): Row[] {
  const after = claims.filter(({ queue }) => queue === narrowed).map(({ at }) => at);
  const inWindow = mostInWindow(after, 5_000);
  // Each holds its slot at least as long.
  const stretches = after.map((at) => ({ from: at, to: at + holdMs }));
  const atOnce = overlapOf(stretches, narrow.maxConcurrency, Infinity).most;
  const started = claims.filter(({ queue }) => queue === paused).length;
  return [
    judged(
      {
        what: 'in force by the answers to the PUT and the pause',
        measured: inForce.join('; '),
        numbers: {},
      },
      'false; false',
      inForce.every((one) => !one),
    ),
    judged(
      {
        what: 'after Redis went on, 50 in 5 s and 5 at once: most in 5 s; at once',
        measured: `${count(inWindow)}; ${count(atOnce)}`,
        numbers: { inWindow, atOnce, claims: after.length },
      },
      '≤ 50, and some; ≤ 5',
      inWindow <= 50 && after.length > 0 && atOnce <= narrow.maxConcurrency,
    ),
    judged(
      {
        what: 'tasks of the paused queue that started after Redis went on',
        measured: count(started),
        numbers: { started },
      },
      '0',
      started === 0,
    ),
  ];
}

async function fullRow(cluster: Cluster, watchedMs: number): Promise<Row> {
  await askRedis(cluster.redisUrl, 'config', 'set', 'maxmemory', '1');
  await cluster.put(fresh, { maxConcurrency: fewSlots });
  await cluster.submit(calls(500, fresh));
  await delay(hungMs);
  await askRedis(cluster.redisUrl, 'config', 'set', 'maxmemory', '0');
  await delay(watchedMs);
  const stretches = cluster.standIn.calls
    .filter(({ queue }) => queue === fresh)
    .map(({ receivedAt, answeredAt }) => ({ from: receivedAt, to: answeredAt ?? receivedAt }));
  const { most } = overlapOf(stretches, fewSlots, Infinity);
  return judged(
    {
      what: `new queue whose settings met a full Redis: at once at the service, of ${fewSlots} allowed; calls`,
      measured: `${count(most)}; ${count(stretches.length)}`,
      numbers: { most, calls: stretches.length },
    },
    `≤ ${fewSlots}; some`,
    most <= fewSlots && stretches.length > 0,
  );
}

function calls(length: number, queue: string) {
  return Array.from({ length }, () => {
    return { taskType: 'call', queue, parameters: { hold_ms: holdMs } };
  });
}
