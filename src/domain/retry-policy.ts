import {
  attemptErrorCodes,
  isDenial,
  isPushBack,
  isRetriable,
  type AttemptError,
} from './attempt-error.js';
import type { Priority } from './priority.js';
import { defaultTaskPolicy, type TaskPolicy } from './task-policy.js';

/** A service that says "slow down" is believed up to an hour. */
export const maxRetryAfterSeconds = 3600;
export const maxDeferrals = 100;
/** Times that an `assigned` task nobody started goes back at no cost. */
export const maxReturns = 10;

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

/** What of the settings judges a failure. */
export type RetryLimits = Pick<TaskPolicy, 'maxBackoffSeconds' | 'maxRetriesByError'>;

/** `random` is in [0, 1): it spreads retries that would otherwise come back together. */
export function judgeFailure(
  attempt: FailedAttempt,
  random: number,
  excuse: Excuse | null = null,
  limits: RetryLimits = defaultTaskPolicy,
): Verdict {
  const { error } = attempt;
  const isExcused = excuse !== null && attempt.deferrals < maxDeferrals;
  if (!isRetriable(error) || (isDenial(error.code) && !isExcused)) {
    return { kind: 'dead_letter', reason: `${error.code} is not retried` };
  }
  if (isExcused) {
    return { kind: 'defer', delayMs: Math.max(backoffMs(attempt, random, limits), excuse.restMs) };
  }
  if (attempt.retryCount >= attempt.maxRetries) {
    return { kind: 'dead_letter', reason: `all ${String(attempt.maxRetries)} retries are spent` };
  }
  const ofError = limitOf(limits, error.code);
  if (attempt.retryCount >= ofError) {
    const reason = `${error.code} is retried up to ${String(ofError)} times, and the task was before`;
    return { kind: 'dead_letter', reason };
  }
  return {
    kind: 'retry',
    delayMs: backoffMs(attempt, random, limits),
    timeoutSeconds: nextTimeoutSeconds(attempt.timeoutSeconds, error.code),
  };
}

function limitOf({ maxRetriesByError }: RetryLimits, code: string): number {
  return Object.hasOwn(maxRetriesByError, code) ? (maxRetriesByError[code] ?? Infinity) : Infinity;
}

export function backoffMs(
  attempt: FailedAttempt,
  random: number,
  { maxBackoffSeconds }: Pick<RetryLimits, 'maxBackoffSeconds'> = defaultTaskPolicy,
): number {
  const { error, priority, retryCount } = attempt;
  if (error.retryAfterSeconds !== undefined) {
    return Math.ceil(Math.min(error.retryAfterSeconds, maxRetryAfterSeconds) * 1000);
  }
  const exponential = 2 ** retryCount * 1000;
  const jittered = exponential * (1 + maxJitterShare * random);
  const capped = Math.min(jittered, maxBackoffSeconds[priority] * 1000);
  return Math.round(isPushBack(error.code) ? capped * 2 : capped);
}

/** Only an attempt that ran out of time or memory gets more: a wrong answer needs no more time. */
export function nextTimeoutSeconds(timeoutSeconds: number, code: string): number {
  const needsMore = code === attemptErrorCodes.timeout || code === attemptErrorCodes.outOfMemory;
  if (!needsMore) return timeoutSeconds;
  const grown = Math.min(Math.ceil(timeoutSeconds * 1.5), maxGrownTimeoutSeconds);
  return Math.max(timeoutSeconds, grown);
}
