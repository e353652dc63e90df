import type { JsonValue } from './json.js';

/** Why an attempt went wrong, as its worker or the engine says. */
export interface AttemptError {
  readonly code: string;
  readonly message: string;
  /** Whether another attempt could go better. */
  readonly retriable: boolean;
  readonly retryAfterSeconds?: number;
  readonly details?: JsonValue;
}

/** Codes that the engine treats specially; any other is the user's own. */
export const attemptErrorCodes = {
  /** 429: the service asks for fewer calls. */
  rateLimited: 'RATE_LIMITED',
  /** 502, 503, 504, 529, or no connection. */
  unavailable: 'UNAVAILABLE',
  /** The account at the service has no quota or credit left. */
  quotaExhausted: 'QUOTA_EXHAUSTED',
  /** 401: the service does not accept the API key. */
  unauthorized: 'UNAUTHORIZED',
  /** 403: the API key is known and may not do this. */
  forbidden: 'FORBIDDEN',
  timeout: 'TIMEOUT',
  outOfMemory: 'OUT_OF_MEMORY',
  invalidInput: 'INVALID_INPUT',
  /** The parameters of the task are not in the database: rows were deleted or lost. */
  inputMissing: 'INPUT_MISSING',
  resultTooLarge: 'RESULT_TOO_LARGE',
  workerLost: 'WORKER_LOST',
  neverStarted: 'NEVER_STARTED',
  /** The one a task that was never run can end with. */
  capacity: 'capacity',
  /** Of a task that was cancelled because its halted workflow was given up. */
  workflowGivenUp: 'workflow_given_up',
} as const;

const neverRetried: ReadonlySet<string> = new Set([
  attemptErrorCodes.invalidInput,
  attemptErrorCodes.inputMissing,
  attemptErrorCodes.resultTooLarge,
]);

const pushBackCodes: ReadonlySet<string> = new Set([
  attemptErrorCodes.rateLimited,
  attemptErrorCodes.unavailable,
  attemptErrorCodes.quotaExhausted,
]);

const denialCodes: ReadonlySet<string> = new Set([
  attemptErrorCodes.unauthorized,
  attemptErrorCodes.forbidden,
]);

/** The service asks for fewer calls, or is away. Later it may answer. */
export function isPushBack(code: string): boolean {
  return pushBackCodes.has(code);
}

/** The service refuses the API key. The task is not retried, unless its whole queue waits for that. */
export function isDenial(code: string): boolean {
  return denialCodes.has(code);
}

export function isRetriable(error: AttemptError): boolean {
  return error.retriable && !neverRetried.has(error.code);
}

export type AttemptOutcome =
  'succeeded' | 'failed' | 'timed_out' | 'lapsed' | 'released' | 'deferred' | 'cancelled';
