import {
  attemptErrorCodes,
  isDenial,
  isPushBack,
  type AttemptError,
} from '../domain/attempt-error.js';
import type { JsonValue } from '../domain/json.js';
import { bounds } from '../protocol/bounds.js';
import { findJsonFault } from '../protocol/json-measure.js';
import { isDelay } from './apply-retry-policy.js';
import { isErrorCode } from './error-code.js';
import { classOf, codeOfClient, isObject } from './error-fields.js';
import { findServiceError, type ServiceError } from './service-errors.js';
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

export interface UnavailableErrorOptions extends Omit<HandlerErrorOptions, 'code'> {
  /** How long the service said that it needs. */
  readonly seconds?: number;
}

/** The service is away. It costs a retry, unless the whole queue waits for the service. */
export class UnavailableError extends HandlerError {
  override readonly name = 'UnavailableError';
  readonly retryAfterSeconds: number | undefined;

  constructor(message = 'The service is not available', options: UnavailableErrorOptions = {}) {
    super(attemptErrorCodes.unavailable, message, options);
    this.retryAfterSeconds = options.seconds;
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

const engineCodes: ReadonlySet<string> = new Set(Object.values(attemptErrorCodes));

interface SelfDescription extends Error {
  readonly code?: unknown;
  readonly retriable?: unknown;
  readonly retryAfterSeconds?: unknown;
  readonly details?: unknown;
}

/** What a handler threw: what is reported, and what only the worker needs to know. */
export interface Thrown {
  readonly error: AttemptError;
  /** All that `retry.codes` may call it, the most specific name first. */
  readonly names: readonly string[];
  /** The HTTP status that alone says that it is not retried: a policy may say otherwise. */
  readonly finalStatus: number | null;
}

/**
 * Whatever a handler throws, also a string, becomes an attempt's error. What an error says about
 * itself counts, not its class: the handler's module may have loaded another copy of this one. What
 * it does not say follows from the answer of the service that the handler called.
 */
export function readThrown(thrown: unknown): Thrown {
  try {
    const service = findServiceError(thrown, Date.now());
    return thrown instanceof Error ? ofError(thrown, service) : ofOther(thrown, service);
  } catch {
    // A getter or a proxy that throws itself.
    return unnamed({ code: 'ERROR', message: 'What was thrown can not be read', retriable: true });
  }
}

export function toAttemptError(thrown: unknown): AttemptError {
  return readThrown(thrown).error;
}

/** Of an error that was not thrown by a handler. */
export function unnamed(error: AttemptError): Thrown {
  return { error, names: [error.code], finalStatus: null };
}

function ofOther(thrown: unknown, service: ServiceError | null): Thrown {
  const message = describe(thrown);
  if (service === null) return unnamed({ code: 'ERROR', message, retriable: true });
  const { code, finalStatus, names } = service;
  const error = { ...told(service), code, message, retriable: isWorthIt(service) };
  return { error, names, finalStatus };
}

function ofError(error: SelfDescription, service: ServiceError | null): Thrown {
  const { retriable, retryAfterSeconds, details } = error;
  // Any of them may have been overwritten with anything.
  const { name, message }: { name: unknown; message: unknown } = error;
  const own = codeOf(error);
  const answer = service === null || speaksForItself(error) ? null : service;
  const code = answer === null ? own : codeByAnswer(error, answer);
  // What an error in our own terms leaves open is taken from its cause.
  const helpful = answer ?? (isPushBack(code) ? service : null);
  const reported: AttemptError = {
    ...told(helpful),
    code,
    message: typeof message === 'string' && message !== '' ? cut(message) : cut(String(name)),
    retriable: retriable !== false && (answer === null || isWorthIt(answer)),
    ...(isDelay(retryAfterSeconds) ? { retryAfterSeconds: asDelay(retryAfterSeconds) } : {}),
    ...detailsOf(details, helpful),
  };
  return {
    error: reported,
    names: [codeIn(reported.details), own, classOf({ constructor: error.constructor, name }), code]
      .filter((one) => one !== null)
      .concat(service?.names ?? []),
    finalStatus: answer?.finalStatus ?? null,
  };
}

/** A code of ours, then what the error says, then what the service said. */
function codeByAnswer({ code }: SelfDescription, answer: ServiceError): string {
  const isOwn =
    !engineCodes.has(answer.code) && isErrorCode(code) && codeOfClient({ code }) === null;
  return isOwn ? code : answer.code;
}

/** A key that is refused now may be accepted later: whether that is waited for, the server decides. */
function isWorthIt({ code, finalStatus }: ServiceError): boolean {
  return finalStatus === null || isDenial(code);
}

/** In our own terms: with a code that the engine knows, or a word on whether to try again. */
function speaksForItself({ code, retriable }: SelfDescription): boolean {
  return typeof retriable === 'boolean' || (typeof code === 'string' && engineCodes.has(code));
}

function told(service: ServiceError | null): Pick<AttemptError, 'retryAfterSeconds' | 'details'> {
  if (service === null) return {};
  const { details, retryAfterSeconds: seconds } = service;
  return { details, ...(seconds === undefined ? {} : { retryAfterSeconds: asDelay(seconds) }) };
}

/** The error's own, beside the status and the code of the answer. */
function detailsOf(own: unknown, service: ServiceError | null): { details?: JsonValue } {
  if (own === undefined || own === null) return {};
  const { details } = keepableDetails(own);
  if (details === undefined || service === null) return details === undefined ? {} : { details };
  const isPlain = isObject(details) && !Array.isArray(details);
  return { details: { ...service.details, ...(isPlain ? details : { details }) } };
}

function codeIn(details: JsonValue | undefined): string | null {
  return isObject(details) && isErrorCode(details.code) ? details.code : null;
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

/** An error's own code, as Node's system errors have one, else its class: `ECONNRESET`, `TypeError`. */
function codeOf({ code, name }: SelfDescription): string {
  if (isErrorCode(code)) return code;
  return name !== 'Error' && isErrorCode(name) ? name : 'ERROR';
}

function asDelay(seconds: number): number {
  return Math.min(seconds, maxRetryAfterSeconds);
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
