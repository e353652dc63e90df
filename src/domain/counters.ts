import { priorities, type Priority } from './priority.js';

/** What is counted of a queue, besides how long tasks waited and ran. */
export const counterNames = [
  'submitted',
  'started',
  'completed',
  /** Attempts that failed, timed out or lapsed, and tasks that expired unrun. */
  'failed',
  'retried',
  'dead_letter',
  'cancelled',
  /** Tasks that passed their dispatch deadline. */
  'expired',
  /** Submits that were answered 429. */
  'refused',
  'deferred',
  /** Attempts that the service answered with "slow down". */
  'rate_limited',
  'lapsed',
  'timed_out',
  'released',
  /** Entries that the ready queue had lost and that were offered again. */
  'reoffered',
  'wait_ms',
  'run_ms',
  /** Of the unit `tokens`: what started tasks were expected to cost, and what ended ones did cost. */
  'tokens_reserved',
  'tokens_used',
] as const;

export type CounterName = (typeof counterNames)[number];

/** Upper bounds of the buckets; one more bucket has everything above. */
const waitBoundsSeconds = [0.1, 0.5, 1, 5, 15, 60, 300, 600, 1_500, 3_600];
const runBoundsSeconds = [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900];

const bucketsOf = (bounds: readonly number[]): number => bounds.length + 1;
const firstWait = counterNames.length;
const firstRun = firstWait + priorities.length * bucketsOf(waitBoundsSeconds);

/** How many positions a row of counts has. Add further ones behind: stored rows keep their positions. */
export const counterLength = firstRun + bucketsOf(runBoundsSeconds);

export const counterPositions = Object.fromEntries(
  counterNames.map((name, position) => [name, position]),
) as Readonly<Record<CounterName, number>>;

export function waitPosition(priority: Priority, waitMs: number): number {
  return firstWaitOf(priority) + bucketOf(waitBoundsSeconds, waitMs / 1000);
}

export function runPosition(runMs: number): number {
  return firstRun + bucketOf(runBoundsSeconds, runMs / 1000);
}

export type Counts = ArrayLike<number>;

export function countOf(counts: Counts, name: CounterName): number {
  return counts[counterPositions[name]] ?? 0;
}

/** Null: nothing waited. Absent priority: over all of them. */
export function waitQuantile(counts: Counts, share: number, priority?: Priority): number | null {
  const among: readonly Priority[] = priority === undefined ? priorities : [priority];
  const buckets = Array.from({ length: bucketsOf(waitBoundsSeconds) }, () => 0);
  for (const first of among.map(firstWaitOf)) {
    for (const bucket of buckets.keys()) {
      buckets[bucket] = (buckets[bucket] ?? 0) + (counts[first + bucket] ?? 0);
    }
  }
  return quantile(waitBoundsSeconds, buckets, share);
}

export function runQuantile(counts: Counts, share: number): number | null {
  const buckets = Array.from(
    { length: bucketsOf(runBoundsSeconds) },
    (_, bucket) => counts[firstRun + bucket] ?? 0,
  );
  return quantile(runBoundsSeconds, buckets, share);
}

/** In seconds, interpolated inside the bucket. In the last bucket it is a lower bound. */
function quantile(
  bounds: readonly number[],
  buckets: readonly number[],
  share: number,
): number | null {
  const total = buckets.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  const rank = share * total;
  let below = 0;
  for (const [bucket, count] of buckets.entries()) {
    if (count > 0 && below + count >= rank) {
      const from = bounds[bucket - 1] ?? 0;
      const to = bounds[bucket] ?? from;
      return from + ((to - from) * Math.max(0, rank - below)) / count;
    }
    below += count;
  }
  return bounds.at(-1) ?? null;
}

function firstWaitOf(priority: Priority): number {
  return firstWait + priorities.indexOf(priority) * bucketsOf(waitBoundsSeconds);
}

function bucketOf(bounds: readonly number[], seconds: number): number {
  let bucket = 0;
  while (bucket < bounds.length && seconds > (bounds[bucket] ?? 0)) bucket += 1;
  return bucket;
}
