import { setTimeout as delay } from 'node:timers/promises';
import { spreadOf } from '../../shared/measure.js';
import { count, judged, noted, seconds, type Scenario } from '../../shared/scenario.js';
import { Fleet, steps } from '../fleet.js';

const heartbeatIntervalMs = 2_000;
const leaseMs = 6_000;
const sweepMs = 1_000;
const stepMs = 100;
/** Not all at the same place between two heartbeats. */
const betweenKillsMs = 370;

export const kill: Scenario = {
  name: 'kill',
  about: 'workers killed in the middle of a task, with a lease of 6 s; another one is there',
  run: async (lab) => {
    await using fleet = await Fleet.start(lab.postgresUrl, { heartbeatIntervalMs, leaseMs });
    const victims = lab.size(8, 2);
    const took = await killMidTask(fleet, victims);
    const { median, most } = spreadOf(took);
    const completed = await fleet.countCompleted();
    return [
      judged(
        {
          what: `from the kill to the end elsewhere, without the ${stepMs} ms of the task itself: median; most`,
          measured: `${seconds(median)}; ${seconds(most)} of ${victims}`,
          numbers: { median, most, victims },
        },
        `≤ ${seconds(leaseMs + sweepMs)} (lease and one sweep)`,
        most <= leaseMs + sweepMs,
      ),
      judged(
        { what: 'completed', measured: count(completed), numbers: { completed } },
        count(victims),
        completed === victims,
      ),
      noted({
        what: 'of this, by design: the tasks of a dead worker come back spread over',
        measured: 'up to 3.0 s',
        numbers: {},
      }),
    ];
  },
};

/** Milliseconds from each kill to the end elsewhere, less those of the task itself. */
async function killMidTask(fleet: Fleet, length: number): Promise<number[]> {
  const env = { WORKER_SLOWNESS: '10000' };
  const workers = await fleet.startWorkers(
    Array.from({ length }, (_, index) => ({ name: `victim-${index}`, concurrency: 1, env })),
  );
  await fleet.submit(steps(length, stepMs));
  await fleet.until('every victim to run one', () => fleet.notes().length === length);
  const taskOf = new Map(fleet.notes().map(({ worker, taskId }) => [worker, taskId]));
  await fleet.startWorker({ name: 'survivor', concurrency: length });
  const killedAt = new Map<string, number>();
  for (const { name, process } of workers) {
    killedAt.set(taskOf.get(name) ?? '', Date.now());
    await process.kill();
    await delay(betweenKillsMs);
  }
  await fleet.untilEmpty();
  return fleet
    .notes()
    .filter(({ what }) => what === 'ended')
    .map(({ taskId, at }) => at - (killedAt.get(taskId) ?? NaN) - stepMs);
}
