import { errorTitles } from '../domain/error-catalogue.js';
import {
  errorStatuses,
  SluiceError,
  type CeilingReached,
  type ErrorCode,
  type FieldError,
} from '../domain/errors.js';
import { defined } from './defined.js';
import type { ProblemWire } from './problem-schema.js';

export interface Refusal {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly errors?: readonly FieldError[];
  readonly retryAfterSeconds?: number;
  readonly ceiling?: CeilingReached;
}

export function problemToWire(refusal: Refusal, instance?: string): ProblemWire {
  return defined({
    type: typeOf(refusal.code),
    title: errorTitles[refusal.code],
    status: errorStatuses[refusal.code],
    code: refusal.code,
    detail: refusal.detail,
    instance,
    errors: refusal.errors?.map(({ path, message }) => ({ path, message })),
    retry_after_seconds: refusal.retryAfterSeconds,
    ceiling: refusal.ceiling && {
      queue: refusal.ceiling.queue,
      limit: refusal.ceiling.limit,
      active: refusal.ceiling.active,
    },
  });
}

export function refusalOf(error: SluiceError): Refusal {
  return defined({
    code: error.code,
    detail: error.message,
    errors: error.errors ?? undefined,
    retryAfterSeconds: error.retryAfterSeconds ?? undefined,
    ceiling: error.ceiling ?? undefined,
  });
}

export function isProblem(answer: unknown): answer is ProblemWire {
  return (
    typeof answer === 'object' &&
    answer !== null &&
    'code' in answer &&
    typeof answer.code === 'string' &&
    'detail' in answer &&
    typeof answer.detail === 'string' &&
    'status' in answer &&
    typeof answer.status === 'number'
  );
}

/**
 * Whether a Sluice server refused with this status, for a reason that is known here. Gateways answer with JSON of
 * their own, some of it with a code and a detail: only ours names the page that explains its code.
 */
export function isKnownProblem(answer: unknown, status: number): answer is ProblemWire {
  if (!isProblem(answer) || !isErrorCode(answer.code)) return false;
  return (
    answer.type === typeOf(answer.code) &&
    answer.status === status &&
    errorStatuses[answer.code] === status
  );
}

/** A code of a newer server is unknown here: its status still says what kind of trouble it is. */
export function refusalFromWire(problem: ProblemWire): Refusal {
  return defined({
    code: isErrorCode(problem.code) ? problem.code : codeOfStatus(problem.status),
    detail: problem.detail,
    errors: problem.errors,
    retryAfterSeconds: problem.retry_after_seconds,
    ceiling: problem.ceiling,
  });
}

export function errorOf(refusal: Refusal): SluiceError {
  return new SluiceError(refusal.code, refusal.detail, refusal);
}

/** `path` is a JSON pointer into the request, `message` goes on from it. */
export function invalidField(path: string, message: string): SluiceError {
  return invalidRequest([{ path, message }]);
}

export function invalidRequest(errors: readonly FieldError[]): SluiceError {
  return new SluiceError('invalid_request', describeErrors(errors), { errors });
}

export function describeErrors(errors: readonly FieldError[]): string {
  return errors.map(({ path, message }) => `${path || 'The body'} ${message}`).join('; ');
}

/** For an answer that carries no code of ours, for example one of a proxy. */
export function codeOfStatus(status: number): ErrorCode {
  switch (status) {
    case 401:
      return 'unauthorized';
    case 403:
      return 'forbidden';
    case 404:
      return 'route_not_found';
    case 405:
      return 'method_not_allowed';
    case 408:
      return 'request_timeout';
    case 413:
      return 'payload_too_large';
    case 415:
      return 'unsupported_media_type';
    case 429:
      return 'refused';
    case 431:
      return 'headers_too_large';
    case 502:
    case 503:
    case 504:
      return 'unavailable';
    default:
      return status >= 500 ? 'internal' : 'invalid_request';
  }
}

function typeOf(code: string): string {
  return `/docs#${code}`;
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(errorStatuses, code);
}
