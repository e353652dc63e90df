import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { count, judged, noted, seconds, type Row, type Scenario } from '../../shared/scenario.js';
import { Fleet } from '../../workers/fleet.js';
import { readFinalRows, type FinalRows } from '../final-rows.js';
import { MoodyService } from '../moody-service.js';

const waiting = 1_000;
const slots = 40;
const answerMs = 200;
const probes = 10;

export const serviceAway: Scenario = {
  name: 'service-away',
  about:
    'the service that tasks call answers 503 for 60 s; 1,000 tasks wait, 40 slots in 2 workers and 2 servers',
  run: async (lab) => {
    await using service = await MoodyService.start(answerMs);
    await using fleet = await Fleet.start(lab.postgresUrl, { servers: 2, ready: 'redis' });
    return rowsOf(await takeServiceAway(fleet, service, lab.size(60_000, 10_000)));
  },
};

export interface ServiceAway extends FinalRows {
  readonly wasted: number;
  readonly answered: number;
  /** From the service being back to the end of the last task. */
  readonly tookMs: number;
}

export async function takeServiceAway(
  fleet: Fleet,
  service: MoodyService,
  awayMs: number,
): Promise<ServiceAway> {
  const module = join(import.meta.dirname, '../tasks.mjs');
  const env = { SERVICE_URL: service.url };
  await fleet.startWorkers(
    ['a', 'b'].map((name, at) => ({ name, concurrency: slots / 2, at, env, module })),
  );
  const drafts = Array.from({ length: waiting }, () => ({ taskType: 'ask', queue: 'asked' }));
  await fleet.submit(drafts);
  await fleet.until('calls to be under way', () => service.answered >= slots);
  service.isAway = true;
  await delay(awayMs);
  service.isAway = false;
  const backAt = Date.now();
  const { wasted } = service;
  await fleet.untilEmpty();
  return {
    ...(await readFinalRows(fleet.database)),
    wasted,
    answered: service.answered,
    tookMs: Date.now() - backAt,
  };
}

function rowsOf(run: ServiceAway): Row[] {
  const { wasted, completed, left, mostRetries, answered, tookMs } = run;
  return [
    judged(
      { what: 'calls made in vain', measured: count(wasted), numbers: { wasted } },
      `≤ ${slots + probes} (in flight, and ${probes})`,
      wasted <= slots + probes,
    ),
    judged(
      {
        what: 'completed; left, dead letters included',
        measured: `${count(completed)}; ${count(left)}`,
        numbers: { completed, left },
      },
      `${count(waiting)}; 0`,
      completed === waiting && left === 0,
    ),
    noted({
      what: 'most retries of a task; calls that were answered; from the service being back to the end of the last task',
      measured: `${count(mostRetries)}; ${count(answered)}; ${seconds(tookMs)}`,
      numbers: { mostRetries, answered, tookMs },
    }),
  ];
}
