import { attemptErrorCodes, type AttemptError } from '../domain/attempt-error.js';
import type { JsonValue } from '../domain/json.js';
import { bounds } from '../protocol/bounds.js';
import { findJsonFault } from '../protocol/json-measure.js';
import { toJson } from './to-json.js';

export interface HandlerErrorOptions {
  /** What dead letters are grouped by. */
  readonly code?: string;
  readonly details?: JsonValue;
  readonly cause?: unknown;
}

abstract class HandlerError extends Error {
  readonly code: string;
  readonly retriable: boolean = true;
  readonly details: JsonValue | undefined;

  constructor(code: string, message: string, { details, cause }: HandlerErrorOptions) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.details = details;
  }
}

/** Another attempt would not go better: straight to the dead letters. */
export class NonRetriableError extends HandlerError {
  override readonly name = 'NonRetriableError';
  override readonly retriable = false;

  constructor(message: string, options: HandlerErrorOptions = {}) {
    super(options.code ?? 'NON_RETRIABLE', message, options);
  }
}

/** The next attempt begins no sooner than this. It costs a retry. */
export class RetryAfterError extends HandlerError {
  override readonly name = 'RetryAfterError';
  readonly retryAfterSeconds: number;

  constructor(seconds: number, message?: string, options: HandlerErrorOptions = {}) {
    super(options.code ?? 'RETRY_AFTER', message ?? `Try again in ${seconds} s`, options);
    this.retryAfterSeconds = seconds;
  }
}

/** The service said "slow down": the task comes back later, at no cost. */
export class RateLimitedError extends HandlerError {
  override readonly name = 'RateLimitedError';
  readonly retryAfterSeconds: number | undefined;

  constructor(seconds?: number, message?: string, options: Omit<HandlerErrorOptions, 'code'> = {}) {
    super(
      attemptErrorCodes.rateLimited,
      message ?? 'The service asked for fewer requests',
      options,
    );
    this.retryAfterSeconds = seconds;
  }
}

export type AbortCause = 'timeout' | 'cancelled' | 'lease_lost' | 'drain';

const abortMessages: Readonly<Record<AbortCause, string>> = {
  timeout: 'The attempt took longer than its timeout',
  cancelled: 'The task was cancelled',
  lease_lost: 'The lease is no longer good: another attempt may have begun',
  drain: 'The worker stops and gives the task back',
};

/** The reason that a handler's signal fires with. */
export class TaskAbortedError extends Error {
  override readonly name = 'TaskAbortedError';
  readonly why: AbortCause;

  constructor(why: AbortCause) {
    super(abortMessages[why]);
    this.why = why;
  }
}

interface SelfDescription extends Error {
  readonly retriable?: unknown;
  readonly retryAfterSeconds?: unknown;
  readonly details?: unknown;
}

/**
 * Whatever a handler throws, also a string, becomes an attempt's error. What an error says about
 * itself counts, not its class: the handler's module may have loaded another copy of this one.
 */
export function toAttemptError(thrown: unknown): AttemptError {
  try {
    return thrown instanceof Error ? ofError(thrown) : ofOther(thrown);
  } catch {
    // A getter or a proxy that throws itself.
    return { code: 'ERROR', message: 'What was thrown can not be read', retriable: true };
  }
}

function ofOther(thrown: unknown): AttemptError {
  return { code: 'ERROR', message: describe(thrown), retriable: true };
}

function ofError(error: SelfDescription): AttemptError {
  const { retriable, retryAfterSeconds, details } = error;
  // Any of them may have been overwritten with anything.
  const { name, message }: { name: unknown; message: unknown } = error;
  return {
    code: codeOf(error),
    message: typeof message === 'string' && message !== '' ? cut(message) : cut(String(name)),
    retriable: retriable !== false,
    ...(isDuration(retryAfterSeconds)
      ? { retryAfterSeconds: Math.min(retryAfterSeconds, maxRetryAfterSeconds) }
      : {}),
    ...(details === undefined ? {} : keepableDetails(details)),
  };
}

export function cut(message: string): string {
  return message.slice(0, bounds.messageLength);
}

function describe(thrown: unknown): string {
  if (typeof thrown === 'string') return cut(thrown);
  if (thrown === undefined) return 'undefined';
  try {
    return cut(JSON.stringify(toJson(thrown, bounds.taskBytes)));
  } catch {
    return Object.prototype.toString.call(thrown);
  }
}

/** A year: the most that the server takes. */
const maxRetryAfterSeconds = 31_536_000;

const codePattern = /^[A-Za-z0-9_.:-]{1,100}$/;

/** An error's own code, as Node's system errors have one, else its class: `ECONNRESET`, `TypeError`. */
function codeOf(error: Error): string {
  const { code } = error as { code?: unknown };
  if (typeof code === 'string' && codePattern.test(code)) return code;
  return error.name !== 'Error' && codePattern.test(error.name) ? error.name : 'ERROR';
}

function isDuration(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && Number.isFinite(value);
}

/** What helps to understand a failure must not become another one. */
export function keepableDetails(details: unknown): { details?: JsonValue } {
  try {
    const json = toJson(details, bounds.taskBytes);
    return findJsonFault(json, bounds.taskBytes) === null ? { details: json } : {};
  } catch {
    return {};
  }
}
