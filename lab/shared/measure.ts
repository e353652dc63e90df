import { mostInWindow as mostAmountInWindow } from '../../test/limits/sliding-window.js';

/** The most events in any half-open window of this length. */
export function mostInWindow(times: readonly number[], windowMs: number): number {
  return mostAmountInWindow(
    times.map((atMs) => ({ atMs, amount: 1 })),
    windowMs,
  );
}

/**
 * Events for each one that the rate allows, between the first event after `warmUpMs` and the last:
 * from event to event, so that where the time begins and ends counts for nothing. The tokens that a
 * full bucket begins with are gone by then.
 */
export function shareUsed(times: readonly number[], ratePerMs: number, warmUpMs: number): number {
  const [firstOfAll = 0] = times;
  const counted = times.filter((time) => time >= firstOfAll + warmUpMs);
  const [first = 0] = counted;
  const durationMs = (counted.at(-1) ?? first) - first;
  return durationMs === 0 ? 0 : (counted.length - 1) / (durationMs * ratePerMs);
}

/**
 * How many more events than the rate allows in any stretch, from one of them to another: at most the
 * burst. A bucket that forgets its level is full again, which shows here and in no single window.
 */
export function mostBeyondRate(
  times: readonly number[],
  ratePerMs: number,
  jitterMs: number,
): number {
  let most = 0;
  let lowest = Infinity;
  for (const [index, time] of times.entries()) {
    const surplus = index - time * ratePerMs;
    lowest = Math.min(lowest, surplus);
    most = Math.max(most, surplus - lowest + 1 - jitterMs * ratePerMs);
  }
  return most;
}

export interface Spread {
  readonly least: number;
  readonly median: number;
  readonly p99: number;
  readonly most: number;
}

export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  return {
    least: sorted[0] ?? 0,
    median: percentile(sorted, 0.5),
    p99: percentile(sorted, 0.99),
    most: sorted.at(-1) ?? 0,
  };
}

/** How much later than the soonest the latest came. */
export function jitterOf(delays: readonly number[]): number {
  const { least, most } = spreadOf(delays);
  return most - least;
}

export function median(values: readonly number[]): number {
  return spreadOf(values).median;
}

function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

export interface Stretch {
  readonly from: number;
  readonly to: number;
}

export interface Overlap {
  /** The most at once. One that ends when another begins does not meet it. */
  readonly most: number;
  /** Of the time from the first begin to `until`, this share had fewer than `full` at once. */
  readonly shareBelow: number;
  /** At once, on average over the same time. */
  readonly average: number;
}

export function overlapOf(stretches: readonly Stretch[], full: number, until: number): Overlap {
  const steps = stretches
    .flatMap(({ from, to }) => [
      { at: from, step: 1 },
      { at: to, step: -1 },
    ])
    .sort((a, b) => a.at - b.at || a.step - b.step);
  const begin = steps[0]?.at ?? 0;
  const seen = { most: 0, now: 0, last: begin, belowMs: 0, sumMs: 0 };
  for (const { at, step } of steps) {
    const passedMs = Math.max(0, Math.min(at, until) - Math.min(seen.last, until));
    if (seen.now < full) seen.belowMs += passedMs;
    seen.sumMs += seen.now * passedMs;
    seen.now += step;
    seen.last = at;
    seen.most = Math.max(seen.most, seen.now);
  }
  const durationMs = Math.max(1, until - begin);
  return {
    most: seen.most,
    shareBelow: seen.belowMs / durationMs,
    average: seen.sumMs / durationMs,
  };
}

/** How long each place stood empty between two of the `full` that may be at once. */
export function gapsOf(stretches: readonly Stretch[], full: number): number[] {
  const ends = stretches.map(({ to }) => to).sort((a, b) => a - b);
  const begins = stretches.map(({ from }) => from).sort((a, b) => a - b);
  return begins.slice(full).map((begin, index) => begin - (ends[index] ?? begin));
}

/** The same numbers for the same seed (mulberry32): every run gets the same work. */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
