import {
  attemptErrorCodes,
  isDenial,
  isPushBack,
  isRetriable,
  type AttemptError,
} from './attempt-error.js';
import type { Priority } from './priority.js';

export const defaultMaxRetries: Readonly<Record<Priority, number>> = { high: 5, medium: 3, low: 2 };

export const defaultTimeoutSeconds: Readonly<Record<Priority, number>> = {
  high: 300,
  medium: 600,
  low: 900,
};

/** A service that says "slow down" is believed up to an hour. */
export const maxRetryAfterSeconds = 3600;
export const maxDeferrals = 100;
/** Times that an `assigned` task nobody started goes back at no cost. */
export const maxReturns = 10;

const maxBackoffMs: Readonly<Record<Priority, number>> = {
  high: 10_000,
  medium: 30_000,
  low: 60_000,
};
const maxGrownTimeoutSeconds = 3600;
const maxJitterShare = 0.3;

export interface FailedAttempt {
  readonly priority: Priority;
  readonly retryCount: number;
  readonly maxRetries: number;
  readonly deferrals: number;
  readonly timeoutSeconds: number;
  readonly error: AttemptError;
}

/** What becomes of a task whose attempt went wrong. */
export type Verdict =
  | { readonly kind: 'retry'; readonly delayMs: number; readonly timeoutSeconds: number }
  | { readonly kind: 'defer'; readonly delayMs: number }
  | { readonly kind: 'dead_letter'; readonly reason: string };

/** It is not the task's fault, as far as is known: it comes back at no cost, `restMs` later at least. */
export interface Excuse {
  readonly restMs: number;
}

/** `random` is in [0, 1): it spreads retries that would otherwise come back together. */
export function judgeFailure(
  attempt: FailedAttempt,
  random: number,
  excuse: Excuse | null = null,
): Verdict {
  const { error } = attempt;
  const isExcused = excuse !== null && attempt.deferrals < maxDeferrals;
  if (!isRetriable(error) || (isDenial(error.code) && !isExcused)) {
    return { kind: 'dead_letter', reason: `${error.code} is not retried` };
  }
  if (isExcused) {
    return { kind: 'defer', delayMs: Math.max(backoffMs(attempt, random), excuse.restMs) };
  }
  if (attempt.retryCount >= attempt.maxRetries) {
    return { kind: 'dead_letter', reason: `all ${String(attempt.maxRetries)} retries are spent` };
  }
  return {
    kind: 'retry',
    delayMs: backoffMs(attempt, random),
    timeoutSeconds: nextTimeoutSeconds(attempt.timeoutSeconds, error.code),
  };
}

export function backoffMs(attempt: FailedAttempt, random: number): number {
  const { error, priority, retryCount } = attempt;
  if (error.retryAfterSeconds !== undefined) {
    return Math.ceil(Math.min(error.retryAfterSeconds, maxRetryAfterSeconds) * 1000);
  }
  const exponential = 2 ** retryCount * 1000;
  const jittered = exponential * (1 + maxJitterShare * random);
  const capped = Math.min(jittered, maxBackoffMs[priority]);
  return Math.round(isPushBack(error.code) ? capped * 2 : capped);
}

/** Only an attempt that ran out of time or memory gets more: a wrong answer needs no more time. */
export function nextTimeoutSeconds(timeoutSeconds: number, code: string): number {
  const needsMore = code === attemptErrorCodes.timeout || code === attemptErrorCodes.outOfMemory;
  if (!needsMore) return timeoutSeconds;
  const grown = Math.min(Math.ceil(timeoutSeconds * 1.5), maxGrownTimeoutSeconds);
  return Math.max(timeoutSeconds, grown);
}
