import { isDenial, isPushBack, isRetriable, type AttemptError } from '../domain/attempt-error.js';
import { maxRetryAfterSeconds } from '../domain/retry-policy.js';
import type { Logger } from '../runtime/log.js';

/** How the tasks of one type are tried again. What it does not say is as for any task. */
export interface RetryPolicy {
  /**
   * By the error's code, the code of the SDK, the class or the HTTP status (`HTTP_400`): `false` for
   * never, or a number: not when the task was retried as often already. It never allows more than
   * `maxRetries`.
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
  /** What the policy may call the error, the most specific name first; absent: its code. */
  readonly names?: readonly string[];
  /** The HTTP status that alone says that it is not retried: the policy may say otherwise. */
  readonly finalStatus?: number | null;
}

/**
 * What an attempt's failure becomes by the policy of its type. An error that names its own time keeps
 * it. A push-back gets none: it would be taken for the service's own, for which the whole queue waits.
 */
export function applyRetryPolicy(
  { codes = {}, delaySeconds }: RetryPolicy,
  error: AttemptError,
  { retryCount, log, names = [error.code], finalStatus = null }: FailedTry,
): AttemptError {
  const maxRetries = maxRetriesAfter(names, codes);
  const isRetried = maxRetries > 0 && maxRetries !== Infinity;
  // The last attempt, too: its code would stop the queue for all that are not refused.
  const judged = isRetried && finalStatus !== null ? allowed(error, finalStatus) : error;
  if (retryCount >= maxRetries) return { ...judged, retriable: false };
  if (!isRetriable(judged)) return judged;
  if (delaySeconds === undefined || hasItsTime(judged)) return judged;
  const seconds = ask(log, () =>
    typeof delaySeconds === 'function'
      ? delaySeconds(retryCount + 1, judged)
      : (delaySeconds[retryCount] ?? delaySeconds.at(-1)),
  );
  return seconds === null ? judged : { ...judged, retryAfterSeconds: seconds };
}

/** Infinity: the policy says nothing of it. */
function maxRetriesAfter(
  names: readonly string[],
  codes: Readonly<Record<string, false | number>>,
): number {
  const name = names.find((one) => Object.hasOwn(codes, one));
  const most = name === undefined ? undefined : codes[name];
  return most === false ? 0 : (most ?? Infinity);
}

/** Retried although its status says otherwise. Its queue is then not stopped for a key that is refused. */
function allowed(error: AttemptError, status: number): AttemptError {
  return { ...error, retriable: true, code: isDenial(error.code) ? `HTTP_${status}` : error.code };
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
