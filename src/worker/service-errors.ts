import { attemptErrorCodes } from '../domain/attempt-error.js';
import type { JsonObject } from '../domain/json.js';
import {
  causesOf,
  classOf,
  codeOfClient,
  codeOfService,
  statusOf,
  typeOfService,
  type Fields,
} from './error-fields.js';
import { retryAfterSecondsOf } from './retry-after.js';

const { rateLimited, unavailable, quotaExhausted, unauthorized, forbidden } = attemptErrorCodes;

/** What an error says about the service that was called. */
export interface ServiceError {
  /** A code of ours, the code that the service gave, or `HTTP_400`. */
  readonly code: string;
  /** Absent: it named no time. */
  readonly retryAfterSeconds?: number;
  /** Its answer's status, and what the service and the client called it. */
  readonly details: JsonObject;
  /** Its status alone says that another attempt would be answered the same; null: it does not. */
  readonly finalStatus: number | null;
  /** All that `retry.codes` may call it, the most specific name first. */
  readonly names: readonly string[];
}

/** Of all answers 4xx, those that another attempt may change. */
const retriedStatuses: ReadonlySet<number> = new Set([408, 409, 425, 429]);

/** 529 is how Anthropic says that it is overloaded. */
const codesOfStatuses: ReadonlyMap<number, string> = new Map([
  [401, unauthorized],
  [402, quotaExhausted],
  [403, forbidden],
  [429, rateLimited],
  [502, unavailable],
  [503, unavailable],
  [504, unavailable],
  [529, unavailable],
]);

/** How services call an account that must be paid for, whatever the status: OpenAI says 429. */
const quotaCodes: ReadonlySet<string> = new Set([
  'insufficient_quota',
  'billing_hard_limit_reached',
  'billing_not_active',
  'billing_error',
]);

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

/**
 * What the errors of HTTP clients say of the service, themselves or in their causes. An answer says
 * more than the network, the outermost more than those within. Null: nothing that can be read.
 */
export function findServiceError(thrown: unknown, nowMs: number): ServiceError | null {
  try {
    const chain = causesOf(thrown);
    for (const error of chain) {
      const status = statusOf(error);
      if (status !== null) return ofAnswer(status, error, nowMs);
    }
    return ofNetwork(chain);
  } catch {
    // A getter or a proxy that throws.
    return null;
  }
}

function ofAnswer(status: number, error: Fields, nowMs: number): ServiceError {
  const ofService = codeOfService(error);
  const said = ofService ?? typeOfService(error);
  const className = classOf(error);
  const isQuota = said !== null && quotaCodes.has(said) && status < 500;
  const code = isQuota ? quotaExhausted : (codesOfStatuses.get(status) ?? ofService);
  const seconds = retryAfterSecondsOf(error, nowMs);
  const original = said ?? codeOfClient(error);
  const names = [said, codeOfClient(error), className, code, `HTTP_${status}`];
  return {
    code: code ?? `HTTP_${status}`,
    details: {
      status,
      ...(original === null ? {} : { code: original }),
      ...(className === null ? {} : { class: className }),
    },
    finalStatus: isFinal(status) && !isQuota ? status : null,
    names: names.filter((name) => name !== null),
    ...(seconds === null ? {} : { retryAfterSeconds: seconds }),
  };
}

function isFinal(status: number): boolean {
  const isOfCaller = status < 500 && !retriedStatuses.has(status);
  return isOfCaller && codesOfStatuses.get(status) !== quotaExhausted;
}

function ofNetwork(chain: readonly Fields[]): ServiceError | null {
  const codes = chain.map(({ code }) => code).filter(isNetworkCode);
  const classes = chain.map(classOf).filter((name) => name !== null);
  const code = codes[0] ?? classes.find((name) => networkClasses.has(name));
  if (code === undefined) return null;
  const names = [...codes, ...classes, unavailable];
  return { code: unavailable, details: { code }, finalStatus: null, names };
}

function isNetworkCode(value: unknown): value is string {
  return typeof value === 'string' && networkCodes.has(value);
}
