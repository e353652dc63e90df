import { setTimeout as delay } from 'node:timers/promises';
import { count, judged, noted, seconds, type Row, type Scenario } from '../../shared/scenario.js';
import type { FleetWorker } from '../../workers/fleet.js';
import { Caller } from '../caller.js';
import { countCompletedOf, readFinalRows, type FinalRows } from '../final-rows.js';
import { MortalFleet } from '../mortal-fleet.js';

const stepMs = 50;
const concurrency = 50;

export const postgresAway: Scenario = {
  name: 'postgres-away',
  about: 'Postgres killed (SIGKILL to all its processes) under load, and started again after 15 s',
  run: async (lab) => {
    await using mortal = await MortalFleet.start(true, {
      heartbeatIntervalMs: 10_000,
      leaseMs: 30_000,
    });
    return rowsOf(await takePostgresAway(mortal, lab.size(15_000, 3_000)));
  },
};

export interface PostgresAway extends FinalRows {
  readonly acknowledged: number;
  readonly acknowledgedAfter: number;
  /** Of those that were acknowledged. */
  readonly lost: number;
  /** 503 with Retry-After. */
  readonly refused: number;
  /** Other answers to a submit, by what they were. */
  readonly others: Readonly<Record<string, number>>;
  /** Servers and workers that are still the same processes. */
  readonly survivors: number;
  /** From Postgres being back to the next acknowledgement, and to the next begin of a task. */
  readonly acceptsAfterMs: number;
  readonly runsAfterMs: number;
}

export async function takePostgresAway(
  { fleet, postgres }: MortalFleet,
  awayMs: number,
): Promise<PostgresAway> {
  const workers = await fleet.startWorkers(['a', 'b'].map((name) => ({ name, concurrency })));
  const pids = [...fleet.serverPids, ...workers.map(({ process }: FleetWorker) => process.pid)];
  const caller = new Caller(fleet.url(0), stepMs);
  const ended = () => fleet.notes().filter(({ what }) => what === 'ended').length;
  await fleet.until('work to be under way', () => ended() >= 100);
  await postgres.kill();
  await delay(awayMs);
  await postgres.restart();
  const backAt = Date.now();
  const after = () => [...caller.acknowledged.values()].filter((at) => at >= backAt);
  await fleet.until('a hundred more to be acknowledged', () => after().length >= 100);
  await caller.stop();
  await fleet.untilEmpty();
  const taskIds = [...caller.acknowledged.keys()];
  const next = fleet.notes().find(({ what, at }) => what === 'began' && at >= backAt);
  return {
    ...(await readFinalRows(fleet.database)),
    acknowledged: taskIds.length,
    acknowledgedAfter: after().length,
    lost: taskIds.length - (await countCompletedOf(fleet.database, taskIds)),
    refused: caller.refused,
    others: Object.fromEntries(caller.others),
    survivors: pids.filter(isThere).length,
    acceptsAfterMs: Math.min(...after()) - backAt,
    runsAfterMs: (next?.at ?? NaN) - backAt,
  };
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function rowsOf(run: PostgresAway): Row[] {
  const { acknowledged, lost, completed, left, refused, mostRetries, survivors } = run;
  const others = Object.values(run.others).reduce((sum, n) => sum + n, 0);
  return [
    judged(
      {
        what: 'acknowledged; of these lost',
        measured: `${count(acknowledged)}; ${count(lost)}`,
        numbers: { acknowledged, lost, completed, left },
      },
      'all; 0',
      lost === 0 && left === 0,
    ),
    judged(
      {
        what: 'submits refused with 503 and Retry-After; answered in any other way',
        measured: `${count(refused)}; ${count(others)}`,
        numbers: { refused, others },
      },
      'all; 0',
      refused > 0 && others === 0,
    ),
    judged(
      { what: 'most retries of a task', measured: count(mostRetries), numbers: { mostRetries } },
      '0',
      mostRetries === 0,
    ),
    judged(
      {
        what: 'server and workers that went on without a restart',
        measured: count(survivors),
        numbers: { survivors },
      },
      '3',
      survivors === 3,
    ),
    noted({
      what: 'from Postgres being back to the next acknowledgement; to the next begin of a task',
      measured: `${seconds(run.acceptsAfterMs)}; ${seconds(run.runsAfterMs)}`,
      numbers: { acceptsAfterMs: run.acceptsAfterMs, runsAfterMs: run.runsAfterMs },
    }),
  ];
}
