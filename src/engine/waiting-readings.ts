import { AgeSketch } from '../domain/age-sketch.js';
import type { AlertSnapshot } from '../domain/alerts/snapshot.js';
import type { Line, LineSnapshot } from './line.js';

/** Of all queues: those that a rule may fire for. */
const maxQueues = 100;

export type WaitingReadings = Pick<
  AlertSnapshot,
  'waiting' | 'waitingHigh' | 'waitingBeyondAgeing' | 'ageP95Seconds' | 'deepestQueues'
>;

/** What the alert rules want to know of the line. */
export async function readWaiting(line: Line): Promise<WaitingReadings> {
  const snapshot = await line.snapshot();
  const lines = [...snapshot.queues.values()];
  return {
    waiting: sum(Object.values(snapshot.total).map(({ count }) => count)),
    waitingHigh: snapshot.total.high.count,
    // High by age: what is high now, less what was submitted as high.
    waitingBeyondAgeing: sum(lines.map(({ waiting, depth }) => waiting.high.count - depth.high)),
    ageP95Seconds: allAges(snapshot).quantileSeconds(0.95) ?? 0,
    deepestQueues: deepest(snapshot),
  };
}

function allAges({ ages }: LineSnapshot): AgeSketch {
  const all = new AgeSketch();
  for (const sketch of Object.values(ages)) all.addAll(sketch);
  return all;
}

function deepest({ queues }: LineSnapshot): AlertSnapshot['deepestQueues'] {
  return [...queues]
    .map(([label, { depth }]) => ({ label, value: sum(Object.values(depth)) }))
    .filter(({ value }) => value > 0)
    .toSorted((a, b) => b.value - a.value)
    .slice(0, maxQueues);
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
