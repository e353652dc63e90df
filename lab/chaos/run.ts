import { Progress } from '../shared/progress.js';
import { check, type Verdict } from './checker.js';
import { Driver } from './driver.js';
import { Faults } from './faults.js';
import { readNotes, readRows } from './final-state.js';
import type { ChaosHistory } from './history.js';
import { describeFault, drawSchedule, type EngineKind, type Fault } from './schedule.js';
import { Stand } from './stand.js';
import { lifted, queues, rateBounds, slotBounds, Workload } from './workload.js';

export interface ChaosOptions {
  readonly engine: EngineKind;
  readonly seed: number;
  readonly durationMs: number;
  readonly faults: number;
  /** fsync as in production. */
  readonly durable: boolean;
  /** Says each fault as it is made. */
  readonly say: (line: string) => void;
}

export interface ChaosRun {
  readonly schedule: readonly Fault[];
  readonly history: ChaosHistory;
  readonly verdict: Verdict;
  /** Results of workers that came too late and were refused. */
  readonly refusedResults: number;
  /** How often the driver was not answered, by the code. */
  readonly refusals: ReadonlyMap<string, number>;
  /** Processes that ended without being killed, and were started again. */
  readonly gaveUp: number;
  /** From the last fault until everything had ended. */
  readonly settledMs: number;
}

/** Short, so that minutes see hundreds of faults. */
export const leaseMs = 3_000;
const heartbeatIntervalMs = 1_000;
/** What has not ended by then is lost. */
const patienceMs = 180_000;

export function scheduleOf({ engine, seed, faults, durationMs }: ChaosOptions): readonly Fault[] {
  return drawSchedule({ engine, seed, faults, durationMs, leaseMs });
}

export async function runChaos(options: ChaosOptions): Promise<ChaosRun> {
  const { engine, seed, durable, say } = options;
  const schedule = scheduleOf(options);
  await using stand = await Stand.start({ engine, leaseMs, heartbeatIntervalMs, durable });
  const driver = new Driver(stand.serverUrls, new Workload(seed));
  await driver.configure(queues);
  driver.start();
  const faults = new Faults(stand, driver);
  const spans = await faults.run(schedule, (fault) => say(describeFault(fault)));
  const beganMs = performance.now();
  await driver.stop();
  const limitsUntil = Date.now();
  await driver.configure(lifted);
  await untilEnded(driver);
  const settledMs = performance.now() - beganMs;
  const gaveUp = [...stand.processes.values()].reduce((sum, one) => sum + one.gaveUp, 0);
  await stand.terminate();
  const { begins, completions, refused } = readNotes(stand.logs);
  const history: ChaosHistory = {
    acknowledged: driver.acknowledged,
    cancels: driver.cancels,
    rows: await readRows(stand.database),
    begins,
    completions,
    faults: spans,
    limits: rateBounds,
    limitsUntil,
    slots: slotBounds,
    retunes: faults.retunes,
    serverOf: stand.serverOf,
  };
  return {
    schedule,
    history,
    verdict: check(history),
    refusedResults: refused,
    refusals: driver.refusals,
    gaveUp,
    settledMs,
  };
}

async function untilEnded(driver: Driver): Promise<void> {
  const total = driver.acknowledged.length;
  const givesUpAt = performance.now() + patienceMs;
  await new Progress().until('ended', total, async () => {
    const living = await driver.countLiving();
    return performance.now() > givesUpAt ? total : total - living;
  });
}
