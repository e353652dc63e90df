import { inspect } from 'node:util';
import { attemptErrorCodes, isRetriable } from '../domain/attempt-error.js';
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
  if (fault !== null) throw new TypeError(`${type}: ${fault}`);
}

function findFault(policy: unknown): string | null {
  if (policy === undefined) return null;
  if (!isObject(policy)) return `retry must be an object, not ${inspect(policy)}`;
  const { codes = {}, delaySeconds, ...others } = policy;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) return `retry has codes and delaySeconds, but no ${unknown}`;
  if (!isObject(codes)) return `retry.codes must be an object, not ${inspect(codes)}`;
  return findCodesFault(codes) ?? findDelaysFault(delaySeconds);
}

function findCodesFault(codes: Readonly<Record<string, unknown>>): string | null {
  const faults = Object.entries(codes).map(([code, most]) => codeFault(code, most));
  return faults.find((fault) => fault !== null) ?? null;
}

function codeFault(code: string, most: unknown): string | null {
  const name = `retry.codes.${code}`;
  if (!isErrorCode(code)) return `retry.codes names ${inspect(code)}, which no error's code can be`;
  if (codesOfTheServer.has(code)) return `${name}: the server finds this error, not a worker`;
  if (most === false || most === 0) return null;
  if (!isCount(most)) return `${name} must be false or a number of retries, not ${inspect(most)}`;
  if (deferredCodes.has(code)) return `${name} must be false: the server decides what it costs`;
  if (!isRetriable({ code, message: '', retriable: true })) return `${name}: it is never retried`;
  return null;
}

function findDelaysFault(delays: unknown): string | null {
  if (delays === undefined || typeof delays === 'function') return null;
  if (!Array.isArray(delays) || delays.length === 0) {
    return `retry.delaySeconds must be a function or a list of seconds, not ${inspect(delays)}`;
  }
  const odd = delays.findIndex((delay) => !isDelay(delay) || delay > maxRetryAfterSeconds);
  if (odd === -1) return null;
  const range = `seconds from 0 to ${maxRetryAfterSeconds}`;
  return `retry.delaySeconds must hold ${range}, not ${inspect(delays[odd])}`;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
