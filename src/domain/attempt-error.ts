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
  rateLimited: 'RATE_LIMITED',
  unavailable: 'UNAVAILABLE',
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

export type PushBackCode =
  typeof attemptErrorCodes.rateLimited | typeof attemptErrorCodes.unavailable;

/** The service asks for fewer calls, or is away. */
export function isPushBack(code: string): code is PushBackCode {
  return code === attemptErrorCodes.rateLimited || code === attemptErrorCodes.unavailable;
}

export function isRetriable(error: AttemptError): boolean {
  return error.retriable && !neverRetried.has(error.code);
}

export type AttemptOutcome =
  'succeeded' | 'failed' | 'timed_out' | 'lapsed' | 'released' | 'deferred' | 'cancelled';
