import { attemptErrorCodes, type PushBackCode } from '../domain/attempt-error.js';
import type { JsonObject } from '../domain/json.js';
import { isErrorCode } from './error-code.js';

const { rateLimited, unavailable } = attemptErrorCodes;

/** A service that was called asks for fewer calls, or is away. */
export interface PushBack {
  readonly code: PushBackCode;
  /** Absent: it named no time. */
  readonly retryAfterSeconds?: number;
  /** Its answer's status, and the code that the client or the network gave it. */
  readonly details: JsonObject;
}

const tooManyRequests = 429;
/** 529 is how Anthropic says that it is overloaded. */
const awayStatuses: ReadonlySet<number> = new Set([502, 503, 504, 529]);

const networkCodes: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'EPIPE',
  'EHOSTUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_SOCKET',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  // How axios tells its own timeout.
  'ECONNABORTED',
]);

/** The SDKs of OpenAI and Anthropic tell a timeout by the class alone: no status, code or cause. */
const networkClasses: ReadonlySet<string> = new Set([
  'APIConnectionError',
  'APIConnectionTimeoutError',
]);

/** Deeper causes are not the service's any more; and causes may form a ring. */
const maxCauses = 5;

/**
 * What the errors of HTTP clients say of the service, themselves or in their causes. An answer says
 * more than the network, the outermost more than those within. Null: nothing that can be read.
 */
export function findPushBack(thrown: unknown, nowMs: number): PushBack | null {
  try {
    const chain = causesOf(thrown);
    const answer = findAnswer(chain);
    return answer === null ? ofNetwork(chain) : ofAnswer(answer, nowMs);
  } catch {
    // A getter or a proxy that throws.
    return null;
  }
}

type Fields = Readonly<Record<string, unknown>>;

interface Answer {
  readonly status: number;
  readonly error: Fields;
}

function causesOf(thrown: unknown): Fields[] {
  const chain: Fields[] = [];
  let next = thrown;
  while (isObject(next) && chain.length < maxCauses) {
    chain.push(next);
    next = next.cause;
  }
  return chain;
}

function findAnswer(chain: readonly Fields[]): Answer | null {
  for (const error of chain) {
    const status = statusOf(error);
    if (status !== null) return { status, error };
  }
  return null;
}

function statusOf({ status, statusCode, response }: Fields): number | null {
  const within = isObject(response) ? [response.status, response.statusCode] : [];
  return [status, statusCode, ...within].find(isHttpStatus) ?? null;
}

function ofAnswer({ status, error }: Answer, nowMs: number): PushBack | null {
  if (status !== tooManyRequests && !awayStatuses.has(status)) return null;
  const seconds = retryAfterSecondsOf(error, nowMs);
  return {
    code: status === tooManyRequests ? rateLimited : unavailable,
    details: { status, ...(isErrorCode(error.code) ? { code: error.code } : {}) },
    ...(seconds === null ? {} : { retryAfterSeconds: seconds }),
  };
}

function ofNetwork(chain: readonly Fields[]): PushBack | null {
  const code =
    chain.map((error) => error.code).find(isNetworkCode) ?? chain.map(classOf).find(isNetworkClass);
  return code === undefined ? null : { code: unavailable, details: { code } };
}

function retryAfterSecondsOf(error: Fields, nowMs: number): number | null {
  const within = isObject(error.response) ? error.response.headers : undefined;
  const headers = [...entriesOf(error.headers), ...entriesOf(within)];
  const milliseconds = numberIn(valueOf('retry-after-ms', headers));
  if (milliseconds !== null) return milliseconds / 1000;
  const after = valueOf('retry-after', headers);
  return numberIn(after) ?? secondsUntil(after, nowMs);
}

type Entry = readonly [unknown, unknown];

/** Of a Headers, a Map, or a plain object. */
function entriesOf(headers: unknown): Entry[] {
  if (!isObject(headers)) return [];
  const entries: unknown[] = isIterable(headers) ? [...headers] : Object.entries(headers);
  return entries.filter(isEntry);
}

function valueOf(header: string, entries: readonly Entry[]): string {
  const found = entries.find(([name]) => String(name).toLowerCase() === header);
  return found === undefined ? '' : String(found[1]).trim();
}

function numberIn(text: string): number | null {
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : null;
}

/** Only what ends in GMT is an HTTP date: `Date.parse` makes one of "-5" too. */
function secondsUntil(text: string, nowMs: number): number | null {
  const atMs = text.endsWith('GMT') ? Date.parse(text) : NaN;
  return Number.isNaN(atMs) ? null : Math.max(0, (atMs - nowMs) / 1000);
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null;
}

function isIterable(value: object): value is Iterable<unknown> {
  return Symbol.iterator in value;
}

function isEntry(value: unknown): value is Entry {
  return Array.isArray(value) && value.length === 2;
}

function isHttpStatus(value: unknown): value is number {
  return typeof value === 'number' && value >= 100 && value <= 599;
}

function isNetworkCode(value: unknown): value is string {
  return typeof value === 'string' && networkCodes.has(value);
}

function isNetworkClass(name: string): boolean {
  return networkClasses.has(name);
}

function classOf(error: Fields): string {
  const { constructor: made } = error;
  return typeof made === 'function' ? made.name : '';
}
