/** Every code that a call can be refused with, and its HTTP status. Their titles are in error-catalogue.ts. */
export const errorStatuses = {
  invalid_request: 400,
  invalid_json: 400,
  unauthorized: 401,
  forbidden: 403,
  queue_forbidden: 403,
  route_not_found: 404,
  task_not_found: 404,
  task_type_not_found: 404,
  queue_not_found: 404,
  limit_not_found: 404,
  worker_not_found: 404,
  alert_not_found: 404,
  key_not_found: 404,
  session_not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  idempotency_conflict: 409,
  task_ended: 409,
  task_started: 409,
  task_not_ended: 409,
  task_completed: 409,
  lease_lost: 409,
  worker_unknown: 409,
  limit_in_use: 409,
  closed: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  refused: 429,
  too_many_lanes: 429,
  headers_too_large: 431,
  internal: 500,
  unavailable: 503,
} as const satisfies Record<string, number>;

export type ErrorCode = keyof typeof errorStatuses;

/** Any HTTP call may be answered with these. */
export const refusalsOfAnyCall: readonly ErrorCode[] = [
  'request_timeout',
  'headers_too_large',
  'refused',
  'internal',
  'unavailable',
];

export interface FieldError {
  readonly path: string;
  readonly message: string;
}

/** The ceiling on active tasks that a submit met. */
export interface CeilingReached {
  /** Null: of all queues together. */
  readonly queue: string | null;
  /** From how many active tasks on its priority is refused. */
  readonly limit: number;
  readonly active: number;
}

export interface SluiceErrorOptions {
  readonly cause?: unknown;
  readonly errors?: readonly FieldError[];
  readonly retryAfterSeconds?: number;
  readonly ceiling?: CeilingReached;
}

/** A refusal with a code of the catalogue; the same in-process and over HTTP. */
export class SluiceError extends Error {
  override readonly name = 'SluiceError';
  readonly code: ErrorCode;
  readonly errors: readonly FieldError[] | null;
  readonly retryAfterSeconds: number | null;
  readonly ceiling: CeilingReached | null;

  constructor(code: ErrorCode, detail: string, options: SluiceErrorOptions = {}) {
    super(detail, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.errors = options.errors ?? null;
    this.retryAfterSeconds = options.retryAfterSeconds ?? null;
    this.ceiling = options.ceiling ?? null;
  }

  get status(): number {
    return errorStatuses[this.code];
  }

  /** What it was asked can't be done for now, by anybody. */
  get isOutage(): boolean {
    return this.status === 503;
  }
}
