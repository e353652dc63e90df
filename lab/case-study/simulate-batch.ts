import { planBatches, type BatchShape } from './batch-plan.js';
import type { Arrival, Ran, Work } from './work.js';

/**
 * The batch system on a machine that takes no time: it fetches all that waits, and fetches again when
 * the last sub-batch of that is answered. A sub-batch is answered when its slowest member is done.
 */
export function simulateBatch(arrivals: readonly Arrival[], shape: BatchShape): readonly Ran[] {
  const ran: Ran[] = [];
  let nowMs = 0;
  for (let next = 0; next < arrivals.length;) {
    nowMs = Math.max(nowMs, arrivals[next]?.arrivedMs ?? 0);
    const fetched = arrivals.slice(next).filter(({ arrivedMs }) => arrivedMs <= nowMs);
    const round = simulateRound(fetched, shape, nowMs);
    ran.push(...round);
    next += fetched.length;
    nowMs = Math.max(...round.map(({ answeredMs }) => answeredMs));
  }
  return ran;
}

/**
 * What it can do when there is always more: sub-batches of so many, so many at a time, and each takes
 * as long as its slowest member. Rounds that end with one part still busy only make it less.
 */
export function batchCapacityPerSecond(work: readonly Work[], shape: BatchShape): number {
  const batches = planBatches(work, { ...shape, parts: 1 }).flat();
  const sumMs = batches.reduce((sum, batch) => sum + slowestOf(batch), 0);
  return (shape.parts * work.length * 1_000) / sumMs;
}

function simulateRound(
  fetched: readonly Arrival[],
  shape: BatchShape,
  fetchedMs: number,
): readonly Ran[] {
  return planBatches(fetched, shape).flatMap((part) => {
    let startedMs = fetchedMs;
    return part.flatMap((batch) => {
      const answeredMs = startedMs + slowestOf(batch);
      const ran = batch.map(({ task, model, arrivedMs, ms }) => {
        return { task, model, arrivedMs, startedMs, endedMs: startedMs + ms, answeredMs };
      });
      startedMs = answeredMs;
      return ran;
    });
  });
}

function slowestOf(batch: readonly Work[]): number {
  return Math.max(...batch.map(({ ms }) => ms));
}
