import { setTimeout as delay } from 'node:timers/promises';
import { count, judged, noted, seconds, type Row, type Scenario } from '../../shared/scenario.js';
import { steps } from '../../workers/fleet.js';
import { readFinalRows, type FinalRows } from '../final-rows.js';
import { MortalFleet } from '../mortal-fleet.js';

const concurrency = 50;

export const longOutages: Scenario = {
  name: 'long-outages',
  about: 'server and Postgres killed, and away for two minutes, three times; 2 workers stay',
  run: async (lab) => {
    await using mortal = await MortalFleet.start(true, {
      heartbeatIntervalMs: lab.size(10_000, 1_000),
      leaseMs: lab.size(30_000, 3_000),
    });
    const length = 1_000;
    const awayMs = lab.size(120_000, 6_000);
    return rowsOf(await goAway(mortal, { length, awayMs, outages: 3 }), length);
  },
};

export interface LongOutages extends FinalRows {
  readonly tookMs: number;
}

interface Plan {
  readonly length: number;
  readonly awayMs: number;
  readonly outages: number;
}

export async function goAway(
  { fleet, postgres }: MortalFleet,
  { length, awayMs, outages }: Plan,
): Promise<LongOutages> {
  await fleet.startWorkers(['a', 'b'].map((name) => ({ name, concurrency })));
  const beganAt = Date.now();
  await fleet.submit(steps(length, 2_000).map((step) => ({ ...step, maxRetries: 0 })));
  for (let outage = 1; outage <= outages; outage += 1) {
    const ended = () => fleet.notes().filter(({ what }) => what === 'ended').length;
    const enough = (outage * length) / (outages + 2);
    await fleet.until(`${enough} tasks to end`, () => ended() >= enough);
    await fleet.endServer(0);
    await postgres.kill();
    await delay(awayMs);
    await postgres.restart();
    await fleet.startServer(0);
  }
  await fleet.untilEmpty();
  return { ...(await readFinalRows(fleet.database)), tookMs: Date.now() - beganAt };
}

function rowsOf(run: LongOutages, length: number): Row[] {
  const { completed, left, mostRetries, mostPastAttempts, tookMs } = run;
  return [
    judged(
      {
        what: 'completed; left, dead letters included',
        measured: `${count(completed)}; ${count(left)}`,
        numbers: { completed, left },
      },
      `${count(length)}; 0`,
      completed === length && left === 0,
    ),
    judged(
      { what: 'most retries of a task', measured: count(mostRetries), numbers: { mostRetries } },
      '0',
      mostRetries === 0,
    ),
    noted({
      what: 'most attempts of a task that came to nothing; all in all',
      measured: `${count(mostPastAttempts)}; ${seconds(tookMs)}`,
      numbers: { mostPastAttempts, tookMs },
    }),
  ];
}
