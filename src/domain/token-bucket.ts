import type { Cost, RateLimit } from './queue-settings.js';

/**
 * The arithmetic of a rate limit. A bucket holds tokens, gains some every millisecond up to its
 * capacity, and is granted from while it holds what a task costs.
 *
 * In a window of W seconds a bucket passes less than its capacity and what it gains in W. With a
 * capacity of 1 + 0.004 R and a gain of 0.996 R in W that is less than R + 1, and grants are whole:
 * never more than R, in any sliding window. A `burst` is asked for by name, and adds to the bound.
 *
 * Levels are counted in parts of a token, so that for all usual limits everything here is whole
 * numbers and exact: 250 parts for each millisecond of the window. What runs in Redis
 * (`src/ready/redis`) does the same operations in the same order on the same kind of numbers.
 */
export interface BucketShape {
  /** Parts in one token. */
  readonly token: number;
  /** Parts gained in one millisecond. */
  readonly gain: number;
  /** In parts. */
  readonly capacity: number;
}

export function bucketShape({ rate, perSeconds, burst }: RateLimit): BucketShape {
  const windowMs = perSeconds * 1000;
  const token = 250 * windowMs;
  return burst === null
    ? { token, gain: 249 * rate, capacity: (250 + rate) * windowMs }
    : { token, gain: 250 * rate, capacity: burst * token };
}

/** `requests` counts tasks: every task costs one, whatever it says. Any other unit: as it says. */
export function costIn(unit: string, cost: Cost): number {
  if (unit === requestUnit) return 1;
  // A unit may be called `constructor`.
  return Object.hasOwn(cost, unit) ? (cost[unit] ?? 0) : 0;
}

export const requestUnit = 'requests';

/** The level `elapsedMs` later, when nothing is granted in between. */
export function refilled(shape: BucketShape, level: number, elapsedMs: number): number {
  return Math.min(shape.capacity, level + elapsedMs * shape.gain);
}

/**
 * The level at which a task of this cost is granted. What costs more than the bucket can hold is
 * granted when it is full, and leaves a debt; what costs nothing waits until there is no debt.
 */
export function neededLevel({ token, capacity }: BucketShape, cost: number): number {
  return Math.min(capacity, cost * token);
}

/** How long until the level is what is needed, in whole milliseconds; 0: it is. */
export function waitMsFor(shape: BucketShape, level: number, cost: number): number {
  return Math.max(0, Math.ceil((neededLevel(shape, cost) - level) / shape.gain));
}

export function spent(shape: BucketShape, level: number, cost: number): number {
  return level - countedAtMost(shape, cost) * shape.token;
}

/** What was reserved and not used comes back, up to the capacity; what was used besides is owed. */
export function settled(shape: BucketShape, level: number, reserved: number, used: number): number {
  const more = countedAtMost(shape, reserved) - countedAtMost(shape, used);
  return Math.min(shape.capacity, level + more * shape.token);
}

const longestDebtMs = 3_600_000;
const longestDebtWindows = 10;

/**
 * Of what one task costs or used, in tokens: all that a full bucket holds, and what it gains in an hour, or in ten windows
 * where those are longer. So no task stops a limit for longer, whatever it says.
 */
export function countedAtMost({ token, gain, capacity }: BucketShape, tokens: number): number {
  const debt = gain * Math.max(longestDebtMs, (longestDebtWindows * token) / 250);
  return Math.min(tokens, (capacity + debt) / token);
}

/** The same tokens in a bucket of another shape: a limit that changes gives nothing away. */
export function reshaped(level: number, from: BucketShape, to: BucketShape): number {
  return Math.min(to.capacity, (level / from.token) * to.token);
}

export function tokensAt({ token }: BucketShape, level: number): number {
  return level / token;
}

export function levelAt({ token, capacity }: BucketShape, tokens: number): number {
  return Math.min(capacity, tokens * token);
}

/** The instant of a checkpoint is known to about this much. */
const uncertainMs = 100;

/**
 * What a bucket goes on with after its level was lost: its last checkpoint, less all that could have
 * been granted and not been written down. `isFinal`: nothing was granted after the checkpoint.
 *
 * Grants are whole, so what is left of a token was not granted, unless the bucket was full
 * meanwhile: then it gained nothing for a while that nobody knows. Of a task that cost more than the
 * bucket holds nothing is known either: see `tokensAtMost`.
 */
export function tokensAfterLoss(
  limit: RateLimit,
  checkpoint: { readonly tokens: number; readonly ageMs: number; readonly isFinal: boolean },
): number {
  const shape = bucketShape(limit);
  const level = levelAt(shape, checkpoint.tokens);
  const ageMs = Math.max(0, checkpoint.ageMs);
  if (checkpoint.isFinal) return tokensAt(shape, refilled(shape, level, ageMs));
  const gained = level + ageMs * shape.gain;
  const uncertain = uncertainMs * shape.gain;
  if (gained + uncertain <= 0) return tokensAt(shape, gained);
  if (gained + uncertain > shape.capacity) return 0;
  return tokensAt(shape, Math.max(0, ((gained + uncertain) % shape.token) - uncertain));
}

/**
 * The most a bucket can hold, by what is known to have been granted: at any instant it held its
 * capacity at most, and gained no more since than time allows.
 */
export function tokensAtMost(
  limit: RateLimit,
  grants: readonly { readonly cost: number; readonly agoMs: number }[],
): number {
  const shape = bucketShape(limit);
  let most = shape.capacity;
  let level = shape.capacity;
  for (const { cost, agoMs } of [...grants].sort((a, b) => a.agoMs - b.agoMs)) {
    level = spent(shape, level, cost);
    most = Math.min(most, level + agoMs * shape.gain);
  }
  return tokensAt(shape, most);
}

/** The bucket of a limit that is the queue's own. */
export function ownBucket(queue: string, unit: string): string {
  return `queue ${queue}\n${unit}`;
}

/** The bucket of a limit that queues share. */
export function sharedBucket(limit: string): string {
  return `limit ${limit}`;
}

export function fullTokens(limit: RateLimit): number {
  const shape = bucketShape(limit);
  return tokensAt(shape, shape.capacity);
}
