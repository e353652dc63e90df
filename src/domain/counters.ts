import { priorities, type Priority } from './priority.js';

/** What is counted of a queue, besides how long tasks waited and ran. */
const firstNames = [
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

/** What is counted besides: behind the histograms, since stored rows keep their positions. */
const laterNames = [
  /** Tasks that were assigned to a worker that did not start them in time. */
  'never_started',
  /** Submits whose idempotency key belongs to a different task. */
  'idempotency_conflict',
  // For how long tasks were in line and none could be taken, in milliseconds by cause: `held_` and a `ThrottleReason`.
  // Sampled; in the sum over all queues, the sum of their times.
  'held_paused_ms',
  'held_pushed_back_ms',
  'held_circuit_open_ms',
  'held_circuit_half_open_ms',
  'held_max_concurrency_ms',
  'held_rate_limit_ms',
  /** The same, for want of a free worker that can do them. */
  'no_worker_ms',
  /** Tasks in line, times for how long. Divided by a length of time: their average number. Sampled. */
  'depth_ms',
] as const;

export const counterNames = [...firstNames, ...laterNames] as const;

export type CounterName = (typeof counterNames)[number];

/** Upper bounds of the buckets; one more bucket has everything above. */
const waitBoundsSeconds = [0.1, 0.5, 1, 5, 15, 60, 300, 600, 1_500, 3_600];
const runBoundsSeconds = [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900];

const bucketsOf = (bounds: readonly number[]): number => bounds.length + 1;
const firstWait = firstNames.length;
const firstRun = firstWait + priorities.length * bucketsOf(waitBoundsSeconds);

const firstLater = firstRun + bucketsOf(runBoundsSeconds);

/** How many positions a row of counts has. */
export const counterLength = firstLater + laterNames.length;

export const counterPositions = Object.fromEntries([
  ...firstNames.map((name, position) => [name, position]),
  ...laterNames.map((name, place) => [name, firstLater + place]),
]) as Readonly<Record<CounterName, number>>;

export function waitPosition(priority: Priority, waitMs: number): number {
  return firstWaitOf(priority) + bucketOf(waitBoundsSeconds, waitMs / 1000);
}

export function runPosition(runMs: number): number {
  return firstRun + bucketOf(runBoundsSeconds, runMs / 1000);
}

export type Counts = ArrayLike<number>;

export function sumOf(a: Counts, b: Counts): number[] {
  const length = Math.max(a.length, b.length);
  return Array.from({ length }, (_, position) => (a[position] ?? 0) + (b[position] ?? 0));
}

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
