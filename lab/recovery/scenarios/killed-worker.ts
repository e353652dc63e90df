import { count, judged, noted, seconds, type Row, type Scenario } from '../../shared/scenario.js';
import { Fleet, steps } from '../../workers/fleet.js';
import { readFinalRows, type FinalRows } from '../final-rows.js';

const sweepMs = 1_000;
/** The tasks of a dead worker come back over up to so long: 2 ms for each. */
const spreadPerTaskMs = 2;
const stepMs = 100;

export const killedWorker: Scenario = {
  name: 'killed-worker',
  about: 'a worker killed (SIGKILL) with 500 running tasks; another one has room for all of them',
  run: async (lab) => {
    const leaseMs = lab.size(30_000, 3_000);
    const heartbeatIntervalMs = lab.size(10_000, 1_000);
    await using fleet = await Fleet.start(lab.postgresUrl, { heartbeatIntervalMs, leaseMs });
    const length = 500;
    return rowsOf(await killWithTasks(fleet, length), length, leaseMs);
  },
};

export interface KilledWorker extends FinalRows {
  /** Tasks that the other one began. */
  readonly elsewhere: number;
  /** From the kill to the first and to the last begin elsewhere. */
  readonly firstMs: number;
  readonly lastMs: number;
}

export async function killWithTasks(fleet: Fleet, length: number): Promise<KilledWorker> {
  const env = { WORKER_SLOWNESS: '100000' };
  const victim = await fleet.startWorker({ name: 'victim', concurrency: length, env });
  await fleet.submit(steps(length, stepMs));
  await fleet.until('the victim to run all', () => fleet.notes().length === length);
  await fleet.startWorker({ name: 'survivor', concurrency: length });
  const killedAt = Date.now();
  await victim.process.kill();
  await fleet.untilEmpty();
  const begun = fleet
    .notes()
    .filter(({ what, worker }) => what === 'began' && worker === 'survivor')
    .map(({ at }) => at - killedAt);
  return {
    ...(await readFinalRows(fleet.database)),
    elsewhere: begun.length,
    firstMs: Math.min(...begun),
    lastMs: Math.max(...begun),
  };
}

function rowsOf(run: KilledWorker, length: number, leaseMs: number): Row[] {
  const { firstMs, lastMs, elsewhere, completed, leastRetries, mostRetries } = run;
  const boundMs = leaseMs + sweepMs + length * spreadPerTaskMs;
  return [
    judged(
      {
        what: 'from the kill to the last begin elsewhere',
        measured: seconds(lastMs),
        numbers: { firstMs, lastMs },
      },
      `≤ ${seconds(boundMs)} (lease, one sweep, and the spread of ${length} tasks)`,
      lastMs <= boundMs,
    ),
    judged(
      {
        what: 'begun elsewhere; completed',
        measured: `${count(elsewhere)}; ${count(completed)}`,
        numbers: { elsewhere, completed },
      },
      `${count(length)}; ${count(length)}`,
      elsewhere === length && completed === length,
    ),
    judged(
      {
        what: 'retries that it cost: least and most of a task',
        measured: `${leastRetries} and ${mostRetries}`,
        numbers: { leastRetries, mostRetries },
      },
      '1 and 1',
      leastRetries === 1 && mostRetries === 1,
    ),
    noted({
      what: 'from the kill to the first begin elsewhere',
      measured: seconds(firstMs),
      numbers: { firstMs },
    }),
  ];
}
