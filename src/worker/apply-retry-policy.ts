import { isPushBack, isRetriable, type AttemptError } from '../domain/attempt-error.js';
import { maxRetryAfterSeconds } from '../domain/retry-policy.js';
import type { Logger } from '../runtime/log.js';

/** How the tasks of one type are tried again. What it does not say is as for any task. */
export interface RetryPolicy {
  /**
   * By the code of the error: `false` for never, or a number: not when the task was retried as often
   * already. It never allows more than `maxRetries`.
   */
  readonly codes?: Readonly<Record<string, false | number>>;
  /**
   * How long a retry waits, instead of longer each time: a list of which the last one repeats, or a
   * function of the number of the retry, which counts from 1, and the error. At most an hour.
   */
  readonly delaySeconds?: readonly number[] | ((retry: number, error: AttemptError) => number);
}

/** What the decision needs to know of the attempt. */
export interface FailedTry {
  readonly retryCount: number;
  readonly log: Logger;
}

/**
 * What an attempt's failure becomes by the policy of its type. An error that names its own time keeps
 * it. A push-back gets none: it would be taken for the service's own, for which the whole queue waits.
 */
export function applyRetryPolicy(
  { codes = {}, delaySeconds }: RetryPolicy,
  error: AttemptError,
  { retryCount, log }: FailedTry,
): AttemptError {
  if (!isRetriable(error)) return error;
  if (retryCount >= maxRetriesAfter(error.code, codes)) return { ...error, retriable: false };
  if (delaySeconds === undefined || hasItsTime(error)) return error;
  const seconds = ask(log, () =>
    typeof delaySeconds === 'function'
      ? delaySeconds(retryCount + 1, error)
      : (delaySeconds[retryCount] ?? delaySeconds.at(-1)),
  );
  return seconds === null ? error : { ...error, retryAfterSeconds: seconds };
}

function maxRetriesAfter(code: string, codes: Readonly<Record<string, false | number>>): number {
  const most = Object.hasOwn(codes, code) ? codes[code] : undefined;
  return most === false ? 0 : (most ?? Infinity);
}

function hasItsTime({ code, retryAfterSeconds }: AttemptError): boolean {
  return retryAfterSeconds !== undefined || isPushBack(code);
}

/** A policy that is wrong costs no more than its own effect. */
function ask(log: Logger, delay: () => unknown): number | null {
  try {
    const seconds = delay();
    if (isDelay(seconds)) return Math.min(seconds, maxRetryAfterSeconds);
    // Of an asynchronous function: a rejection that nobody takes would end the process.
    if (seconds instanceof Promise) seconds.catch(() => undefined);
    log.warn('retry.delaySeconds gave no number of seconds: the retry waits as usual');
  } catch {
    // Not what was thrown: to read it may throw again.
    log.warn('retry.delaySeconds threw: the retry waits as usual');
  }
  return null;
}

export function isDelay(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
