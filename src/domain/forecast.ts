import { effectivePriority, rankOf, type Ageing, type Priority } from './priority.js';
import type { Cost } from './queue-settings.js';
import { bucketShape, levelAt, refilled, tokensAt } from './token-bucket.js';
import {
  waitAt,
  waitLines,
  type WaitCause,
  type WaitFactors,
  type WaitLine,
} from './wait-estimate.js';

export interface ForecastFacts {
  /** Of the queue now. `cost`: of an average task in line. */
  readonly factors: Omit<WaitFactors, 'position'>;
  readonly waiting: number;
  /** That come in line. */
  readonly inflowPerMs: number;
  /** Whether an active worker can do any of it. */
  readonly hasWorker: boolean;
  /** Slots of the workers that can, which other queues may share; null: unknown. */
  readonly workerSlots: number | null;
  /** The next of the line, as far as they were looked at. */
  readonly next: readonly NextTask[];
  readonly ageing: Ageing;
}

/** A task in line. */
export interface NextTask {
  readonly priority: Priority;
  readonly ageMs: number;
  readonly seq: number;
  readonly cost: Cost;
  /** Until its dispatch deadline; null: it has none. */
  readonly expiresInMs: number | null;
}

/** Why it is not known that the line gets shorter. */
export const standstills = ['paused', 'no_worker', 'nothing_starts', 'unknown'] as const;
export type Standstill = (typeof standstills)[number];

export const paces = ['rate_limit', 'max_concurrency', 'workers', 'recent_rate'] as const;
/** What decides how fast the line gets shorter. */
export type Pace = (typeof paces)[number];

export interface Forecast {
  readonly waiting: number;
  readonly inflowPerMinute: number;
  /** In the long run; null: unknown, or nothing goes. */
  readonly drainPerMinute: number | null;
  readonly pace: Pace | null;
  readonly standstill: Standstill | null;
  /** If no further task comes; null: never, as things are. */
  readonly emptyInMs: number | null;
  /** If tasks go on coming as they did; null: never, as things are. */
  readonly emptyInMsWithInflow: number | null;
  readonly deadlines: Deadlines;
}

export interface Deadlines {
  /** Tasks of the line that were looked at, and those of them that have a deadline. */
  readonly lookedAt: number;
  readonly withDeadline: number;
  /** Null: it is unknown when tasks start. */
  readonly missed: number | null;
  readonly firstMissedInMs: number | null;
}

/** When the line is empty and which deadlines will be missed, if nothing changes. */
export function forecastOf(facts: ForecastFacts): Forecast {
  const { waiting, inflowPerMs, factors } = facts;
  const lines = linesAfterPause(facts);
  const standstill = standstillOf(facts, lines);
  const pauseMs = factors.pausedForMs ?? 0;
  const emptyInMs = (inflow: number) =>
    waiting === 0
      ? 0
      : standstill === null
        ? finite(emptyAfterMs(lines, waiting, inflow, pauseMs))
        : null;
  const slowest = lines.toSorted((a, b) => slownessOf(b) - slownessOf(a))[0];
  const eachMs = standstill === null && slowest !== undefined ? slownessOf(slowest) : 0;
  const startsInMs = (position: number) =>
    standstill === null ? pauseMs + waitAt(lines, position) : Infinity;
  return {
    waiting,
    inflowPerMinute: inflowPerMs * 60_000,
    drainPerMinute: eachMs > 0 ? 60_000 / eachMs : null,
    pace: eachMs > 0 && slowest !== undefined ? paceOf(slowest.cause, facts) : null,
    standstill,
    emptyInMs: emptyInMs(0),
    emptyInMsWithInflow: emptyInMs(inflowPerMs),
    deadlines: deadlinesOf(facts, standstill === 'unknown' ? null : startsInMs),
  };
}

/** What a pause lets the buckets gain is there when it ends. */
function linesAfterPause({ factors, workerSlots }: ForecastFacts): WaitLine[] {
  const pausedMs = factors.pausedForMs ?? 0;
  const slots = Math.min(factors.maxConcurrency ?? Infinity, workerSlots ?? Infinity);
  return waitLines({
    ...factors,
    pausedForMs: 0,
    maxConcurrency: Number.isFinite(slots) && slots > 0 ? slots : null,
    buckets: factors.buckets.map(({ tokens, limit }) => {
      const shape = bucketShape(limit);
      return { limit, tokens: tokensAt(shape, refilled(shape, levelAt(shape, tokens), pausedMs)) };
    }),
  });
}

/** Limits tell when tasks might start. When nothing started for a minute although it might, that is not known. */
function standstillOf(facts: ForecastFacts, lines: readonly WaitLine[]): Standstill | null {
  const { waiting, hasWorker, factors } = facts;
  if (waiting === 0) return null;
  if (factors.pausedForMs === null) return 'paused';
  if (!hasWorker) return 'no_worker';
  if (factors.pausedForMs > 0) return lines.length === 0 ? 'unknown' : null;
  const mightStart = waitAt(lines, 0) === 0;
  if (factors.started === 0 && factors.busyMs >= 60_000 && mightStart) return 'nothing_starts';
  return lines.length === 0 ? 'unknown' : null;
}

/**
 * The last task of the line starts when the tokens, slots and time for all before it are there. What comes meanwhile is
 * part of the line: of each cause w + inflow × t tasks must have started after t.
 */
function emptyAfterMs(
  lines: readonly WaitLine[],
  waiting: number,
  inflowPerMs: number,
  pauseMs: number,
): number {
  const atEndOfPause = waiting + inflowPerMs * pauseMs;
  const after = lines.map((line) => {
    const eachMs = slownessOf(line);
    const share = 1 - inflowPerMs * eachMs;
    const aloneMs = line.first / line.per + eachMs * (atEndOfPause - 1);
    return aloneMs <= 0 ? 0 : share <= 0 ? Infinity : aloneMs / share;
  });
  return pauseMs + Math.max(0, ...after);
}

function slownessOf({ each, per }: WaitLine): number {
  return each / per;
}

function paceOf(cause: WaitCause, { factors, workerSlots }: ForecastFacts): Pace | null {
  if (cause === 'paused') return null;
  const areWorkersFewer = (workerSlots ?? Infinity) < (factors.maxConcurrency ?? Infinity);
  return cause === 'max_concurrency' && areWorkersFewer ? 'workers' : cause;
}

/** A task that misses its deadline leaves the line, and those behind it come sooner. */
function deadlinesOf(
  { next, ageing }: ForecastFacts,
  startsInMs: ((position: number) => number) | null,
): Deadlines {
  const withDeadline = next.filter(({ expiresInMs }) => expiresInMs !== null).length;
  const known = { lookedAt: next.length, withDeadline };
  if (startsInMs === null) return { ...known, missed: null, firstMissedInMs: null };
  let position = 0;
  const missed: number[] = [];
  for (const { expiresInMs } of inOrder(next, ageing)) {
    if (expiresInMs !== null && startsInMs(position) > expiresInMs) missed.push(expiresInMs);
    else position += 1;
  }
  const first = missed.length === 0 ? null : Math.max(0, Math.min(...missed));
  return { ...known, missed: missed.length, firstMissedInMs: first };
}

/** As they are taken, unless some grow more urgent meanwhile. */
function inOrder(next: readonly NextTask[], ageing: Ageing): NextTask[] {
  const rank = ({ priority, ageMs }: NextTask) =>
    rankOf(effectivePriority(priority, ageMs, ageing));
  return next
    .map((task) => ({ task, rank: rank(task) }))
    .toSorted((a, b) => a.rank - b.rank || b.task.ageMs - a.task.ageMs || a.task.seq - b.task.seq)
    .map(({ task }) => task);
}

/** Of each unit the mean over all of them. */
export function averageCost(tasks: readonly Pick<NextTask, 'cost'>[]): Cost {
  const sums = new Map<string, number>();
  for (const { cost } of tasks) {
    for (const [unit, amount] of Object.entries(cost)) {
      sums.set(unit, (sums.get(unit) ?? 0) + amount);
    }
  }
  return Object.fromEntries([...sums].map(([unit, sum]) => [unit, sum / tasks.length]));
}

function finite(ms: number): number | null {
  return Number.isFinite(ms) ? ms : null;
}
