import { attemptErrorCodes, isRetriable } from '../domain/attempt-error.js';
import { SluiceError } from '../domain/errors.js';
import { maxRetryAfterSeconds } from '../domain/retry-policy.js';
import { isDelay } from './apply-retry-policy.js';
import { isErrorCode } from './error-code.js';

const { rateLimited, quotaExhausted, workerLost, neverStarted, capacity } = attemptErrorCodes;

/** The server finds them, where no handler's policy is. */
const codesOfTheServer: ReadonlySet<string> = new Set([workerLost, neverStarted, capacity]);

/** They cost no retry while the whole service refuses. */
const deferredCodes: ReadonlySet<string> = new Set([rateLimited, quotaExhausted, 'HTTP_429']);

/** Throws a sentence about the first thing in a policy that would not do what it seems to say. */
export function checkRetryPolicy(type: string, policy: unknown): void {
  const fault = findFault(policy);
  if (fault === null) return;
  const errors = [{ path: '/retry', message: fault }];
  throw new SluiceError('invalid_request', `${type}: ${fault}`, { errors });
}

function findFault(policy: unknown): string | null {
  if (policy === undefined) return null;
  if (!isObject(policy)) return `retry must be an object, not ${shown(policy)}`;
  const { codes = {}, delaySeconds } = policy;
  if (!isObject(codes)) return `retry.codes must be an object, not ${shown(codes)}`;
  return findCodesFault(codes) ?? findDelaysFault(delaySeconds);
}

function findCodesFault(codes: Readonly<Record<string, unknown>>): string | null {
  const faults = Object.entries(codes).map(([code, most]) => codeFault(code, most));
  return faults.find((fault) => fault !== null) ?? null;
}

function codeFault(code: string, most: unknown): string | null {
  const name = `retry.codes.${code}`;
  if (!isErrorCode(code)) return `retry.codes names ${shown(code)}, which no error's code can be`;
  if (codesOfTheServer.has(code)) return `${name}: the server finds this error, not a worker`;
  if (most === false || most === 0) return null;
  if (!isCount(most)) return `${name} must be false or a number of retries, not ${shown(most)}`;
  if (deferredCodes.has(code)) return `${name} must be false: the server decides what it costs`;
  if (!isRetriable({ code, message: '', retriable: true })) return `${name}: it is never retried`;
  return null;
}

function findDelaysFault(delays: unknown): string | null {
  if (delays === undefined || typeof delays === 'function') return null;
  if (!Array.isArray(delays) || delays.length === 0) {
    return `retry.delaySeconds must be a function or a list of seconds, not ${shown(delays)}`;
  }
  const odd = delays.findIndex((delay) => !isDelay(delay) || delay > maxRetryAfterSeconds);
  if (odd === -1) return null;
  const range = `seconds from 0 to ${maxRetryAfterSeconds}`;
  return `retry.delaySeconds must hold ${range}, not ${shown(delays[odd])}`;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** As one would type it. Not by `node:util`: this also runs in browsers. */
function shown(value: unknown): string {
  if (typeof value === 'number' || value === undefined) return String(value);
  return JSON.stringify(value);
}
