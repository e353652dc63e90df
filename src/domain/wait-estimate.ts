import type { Cost, RateLimit } from './queue-settings.js';
import { bucketShape, costIn, levelAt, neededLevel, countedAtMost } from './token-bucket.js';

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

/** What decides how fast a queue moves. */
export type WaitCause = 'paused' | 'rate_limit' | 'max_concurrency' | 'recent_rate';

/** For one cause, a task with so many before it waits (`first` + position × `each`) / `per` milliseconds, or not at all. */
export interface WaitLine {
  readonly cause: WaitCause;
  readonly first: number;
  readonly each: number;
  readonly per: number;
}

/** The slowest of all that it has to wait for; null when nothing is known. */
export function estimateWaitMs({ position, ...factors }: WaitFactors): number | null {
  if (factors.pausedForMs === null) return null;
  const lines = waitLines(factors);
  return lines.length === 0 ? null : waitAt(lines, position);
}

/** The slowest of them. */
export function waitAt(lines: readonly WaitLine[], position: number): number {
  const waits = lines.map(({ first, each, per }) => Math.ceil((first + position * each) / per));
  return Math.max(0, ...waits);
}

/** Without a pause that has no end: nothing is known of what comes after it. */
export function waitLines(factors: Omit<WaitFactors, 'position'>): WaitLine[] {
  const pausedForMs = factors.pausedForMs ?? 0;
  return [
    ...(pausedForMs > 0 ? [{ cause: 'paused', first: pausedForMs, each: 0, per: 1 } as const] : []),
    ...factors.buckets.map(({ tokens, limit }) => tokenLine(factors.cost, tokens, limit)),
    ...slotLine(factors),
    ...recentLine(factors),
  ];
}

/** Until the tokens of all before it have come and gone, and its own are there. */
function tokenLine(cost: Cost, tokens: number, limit: RateLimit): WaitLine {
  const shape = bucketShape(limit);
  const own = costIn(limit.unit, cost);
  const first = neededLevel(shape, own) - levelAt(shape, tokens);
  const each = countedAtMost(shape, own) * shape.token;
  return { cause: 'rate_limit', first, each, per: shape.gain };
}

/** Slots come free one after the other, `maxConcurrency` in one average duration. */
function slotLine(factors: Omit<WaitFactors, 'position'>): WaitLine[] {
  const { maxConcurrency, running, averageDurationMs } = factors;
  if (maxConcurrency === null || averageDurationMs === null) return [];
  const first = (running + 1 - maxConcurrency) * averageDurationMs;
  return [{ cause: 'max_concurrency', first, each: averageDurationMs, per: maxConcurrency }];
}

/** Starts from before tasks had to wait say nothing about how fast they are taken. */
function recentLine({ started, busyMs }: Omit<WaitFactors, 'position'>): WaitLine[] {
  if (started === 0) return [];
  return [{ cause: 'recent_rate', first: 0, each: Math.min(busyMs, 60_000), per: started }];
}

/** What is in the way of a task, and until when; null: nobody can say. */
export interface Obstacle {
  readonly kind: string;
  readonly untilMs: number | null;
}

/** They end when somebody does something. */
const openEnded: ReadonlySet<string> = new Set(['no_worker', 'workflow', 'paused', 'circuit_open']);
/** They end when a running task does. */
const untilOneEnds: ReadonlySet<string> = new Set(['workers_busy', 'max_concurrency']);

/**
 * The estimate, corrected by what is in the way now: nothing starts before that ends. Null: unknown. While all places
 * are taken, an estimate of "now" only means that nothing is known about how long tasks run.
 */
export function waitUnder(
  estimateMs: number | null,
  obstacles: readonly Obstacle[],
  nowMs: number,
): number | null {
  const isUnknown = obstacles.some(
    ({ kind, untilMs }) =>
      untilMs === null &&
      (openEnded.has(kind) || (untilOneEnds.has(kind) && (estimateMs ?? 0) === 0)),
  );
  if (isUnknown) return null;
  const known = obstacles.flatMap(({ untilMs }) => (untilMs === null ? [] : [untilMs - nowMs]));
  if (estimateMs === null && known.length === 0) return null;
  return Math.max(estimateMs ?? 0, ...known);
}
