import { setTimeout as delay } from 'node:timers/promises';
import { count, judged, noted, seconds, type Row, type Scenario } from '../../shared/scenario.js';
import { Fleet, steps } from '../fleet.js';
import { runAgain } from '../run-log.js';

const concurrency = 100;

export const outage: Scenario = {
  name: 'outage',
  about:
    'the server killed for 20 s in the middle of 10,000 tasks of 100 ms, 2 workers with 100 slots',
  run: async (lab) => {
    await using fleet = await Fleet.start(lab.postgresUrl);
    const length = lab.size(10_000, 1_000);
    const outageMs = lab.size(20_000, 2_000);
    return rowsOf(await runOutage(fleet, { length, stepMs: 100, outageMs }), length);
  },
};

export interface Outage {
  readonly completed: number;
  /** By the log of the handlers. */
  readonly ended: number;
  readonly runAgain: number;
  /** Ended, and the server was not there to hear of it. */
  readonly endedMeanwhile: number;
  /** Claimed twice: the answer to a poll was lost, say. */
  readonly claimedAgain: number;
  readonly mostRetries: number;
  /** From the server being back to the next begin. */
  readonly resumedAfterMs: number;
}

export interface OutagePlan {
  readonly length: number;
  readonly stepMs: number;
  readonly outageMs: number;
}

export async function runOutage(fleet: Fleet, plan: OutagePlan): Promise<Outage> {
  const { length, stepMs, outageMs } = plan;
  await fleet.startWorkers(['a', 'b'].map((name) => ({ name, concurrency })));
  await fleet.submit(steps(length, stepMs));
  const ended = () => fleet.notes().filter(({ what }) => what === 'ended');
  await fleet.until('a quarter to end', () => ended().length >= length / 4);
  const beganAt = Date.now();
  await fleet.endServer(0);
  await delay(outageMs);
  const backAt = Date.now();
  await fleet.startServer(0);
  await fleet.untilEmpty();

  const notes = fleet.notes();
  const next = notes.find(({ what, at }) => what === 'began' && at >= backAt);
  const [found] = await fleet.database.query<{ claimedAgain: number; mostRetries: number }>(`
    select count(*) filter (where attempt > 1)::integer as "claimedAgain",
      max(retry_count) as "mostRetries"
    from sluice.task_history`);
  return {
    completed: await fleet.countCompleted(),
    ended: new Set(ended().map(({ taskId }) => taskId)).size,
    runAgain: runAgain(notes).length,
    endedMeanwhile: ended().filter(({ at }) => at > beganAt && at < backAt).length,
    claimedAgain: found?.claimedAgain ?? 0,
    mostRetries: found?.mostRetries ?? 0,
    resumedAfterMs: (next?.at ?? NaN) - backAt,
  };
}

function rowsOf(run: Outage, length: number): Row[] {
  const { completed, ended, endedMeanwhile, claimedAgain, mostRetries, resumedAfterMs } = run;
  return [
    judged(
      {
        what: 'finished tasks that ran again',
        measured: count(run.runAgain),
        numbers: { runAgain: run.runAgain },
      },
      '0',
      run.runAgain === 0,
    ),
    judged(
      {
        what: 'ended by the log of the handlers; completed in Postgres',
        measured: `${count(ended)}; ${count(completed)}`,
        numbers: { ended, completed },
      },
      `${count(length)}; ${count(length)}`,
      ended === length && completed === length,
    ),
    judged(
      {
        what: 'most retries that a task has used',
        measured: count(mostRetries),
        numbers: { mostRetries },
      },
      '0',
      mostRetries === 0,
    ),
    noted({
      what: 'ended while the server was away; claimed twice, since an answer was lost; from the start of the server to the next begin',
      measured: `${count(endedMeanwhile)}; ${count(claimedAgain)}; ${seconds(resumedAfterMs)}`,
      numbers: { endedMeanwhile, claimedAgain, resumedAfterMs },
    }),
  ];
}
