import type { Cost, RateLimit } from './queue-settings.js';
import { bucketShape, costIn, levelAt, neededLevel } from './token-bucket.js';

/** What is known of a task's queue when its wait is estimated. */
export interface WaitFactors {
  /** Tasks of its queue that come before it. */
  readonly position: number;
  /** Those before it are taken to cost the same. */
  readonly cost: Cost;
  /** What is left of the pause, 0 without one; null: until somebody resumes the queue. */
  readonly pausedForMs: number | null;
  readonly buckets: readonly { readonly tokens: number; readonly limit: RateLimit }[];
  readonly maxConcurrency: number | null;
  readonly running: number;
  /** Of those that completed lately; null when none did. */
  readonly averageDurationMs: number | null;
  /** Starts in the last minute, and for how much of it tasks have been waiting, so far as is known. */
  readonly started: number;
  readonly busyMs: number;
}

/** The slowest of all that it has to wait for; null when nothing is known. */
export function estimateWaitMs(factors: WaitFactors): number | null {
  if (factors.pausedForMs === null) return null;
  const known = [
    ...(factors.pausedForMs > 0 ? [factors.pausedForMs] : []),
    ...factors.buckets.map(({ tokens, limit }) => tokenWaitMs(factors, tokens, limit)),
    ...slotWaitMs(factors),
    ...recentWaitMs(factors),
  ];
  return known.length === 0 ? null : Math.max(...known);
}

/** Until the tokens of all before it have come and gone, and its own are there. */
function tokenWaitMs({ position, cost }: WaitFactors, tokens: number, limit: RateLimit): number {
  const shape = bucketShape(limit);
  const each = costIn(limit.unit, cost);
  const wanted = position * each * shape.token + neededLevel(shape, each);
  return Math.max(0, Math.ceil((wanted - levelAt(shape, tokens)) / shape.gain));
}

/** Slots come free one after the other, `maxConcurrency` in one average duration. */
function slotWaitMs(factors: WaitFactors): number[] {
  const { position, maxConcurrency, running, averageDurationMs } = factors;
  if (maxConcurrency === null || averageDurationMs === null) return [];
  const ends = position + running + 1 - maxConcurrency;
  return [Math.max(0, (ends / maxConcurrency) * averageDurationMs)];
}

/** Starts from before tasks had to wait say nothing about how fast they are taken. */
function recentWaitMs({ position, started, busyMs }: WaitFactors): number[] {
  return started === 0 ? [] : [(position * Math.min(busyMs, 60_000)) / started];
}
