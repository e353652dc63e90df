/**
 * Every code that a call can be refused with. The docs, the client's types and the problem
 * documents on the wire come from this table.
 */
export const errorCatalogue = {
  invalid_request: { status: 400, title: 'The request is not valid' },
  invalid_json: { status: 400, title: 'The body is not valid JSON' },
  unauthorized: { status: 401, title: 'A valid API key is needed' },
  forbidden: { status: 403, title: 'This caller may not do that' },
  queue_forbidden: { status: 403, title: 'This key is confined to other queues' },
  route_not_found: { status: 404, title: 'There is no such route' },
  task_not_found: { status: 404, title: 'There is no such task' },
  task_type_not_found: { status: 404, title: 'No worker defined such a task type' },
  queue_not_found: { status: 404, title: 'There is no such queue' },
  limit_not_found: { status: 404, title: 'There is no such limit' },
  worker_not_found: { status: 404, title: 'There is no such worker' },
  key_not_found: { status: 404, title: 'There is no such API key' },
  session_not_found: { status: 404, title: 'There is no such session' },
  method_not_allowed: { status: 405, title: 'The route has no such method' },
  request_timeout: { status: 408, title: 'The request took too long to arrive' },
  idempotency_conflict: { status: 409, title: 'The idempotency key belongs to a different task' },
  task_ended: { status: 409, title: 'The task has already ended' },
  task_started: { status: 409, title: 'The task has already started' },
  task_not_ended: { status: 409, title: 'The task has not ended' },
  task_completed: { status: 409, title: 'A completed task is not run again' },
  lease_lost: { status: 409, title: 'The lease is no longer good' },
  worker_unknown: { status: 409, title: 'The worker must register again' },
  limit_in_use: { status: 409, title: 'A queue still uses the limit' },
  closed: { status: 409, title: 'The program closed this Sluice; only in TypeScript' },
  payload_too_large: { status: 413, title: 'The request is too large' },
  unsupported_media_type: { status: 415, title: 'The content type is not supported' },
  refused: { status: 429, title: 'Not accepted now; try again later' },
  too_many_lanes: { status: 429, title: 'The queue has too many task types' },
  headers_too_large: { status: 431, title: 'The headers are too large' },
  internal: { status: 500, title: 'Something went wrong on our side' },
  unavailable: { status: 503, title: 'A service we depend on is away; try again' },
  standby: { status: 503, title: 'This server stands by; another one serves' },
} as const satisfies Record<string, { status: number; title: string }>;

export type ErrorCode = keyof typeof errorCatalogue;

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
    return errorCatalogue[this.code].status;
  }

  /** What it was asked can't be done for now, by anybody. */
  get isOutage(): boolean {
    return this.status === 503;
  }
}
