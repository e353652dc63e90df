import { errorStatuses, type ErrorCode } from './errors.js';

/** Apart from the statuses: a client gets the title with the refusal, and its bundle does without. */
export const errorTitles: Readonly<Record<ErrorCode, string>> = {
  invalid_request: 'The request is not valid',
  invalid_json: 'The body is not valid JSON',
  unauthorized: 'A valid API key is needed',
  forbidden: 'This caller may not do that',
  queue_forbidden: 'This key is confined to other queues',
  route_not_found: 'There is no such route',
  task_not_found: 'There is no such task',
  task_type_not_found: 'No worker defined such a task type',
  queue_not_found: 'There is no such queue',
  limit_not_found: 'There is no such limit',
  worker_not_found: 'There is no such worker',
  alert_not_found: 'There is no such alert rule',
  key_not_found: 'There is no such API key',
  session_not_found: 'There is no such session',
  method_not_allowed: 'The route has no such method',
  request_timeout: 'The request took too long to arrive',
  idempotency_conflict: 'The idempotency key belongs to a different task',
  task_ended: 'The task has already ended',
  task_started: 'The task has already started',
  task_not_ended: 'The task has not ended',
  task_completed: 'A completed task is not run again',
  lease_lost: 'The lease is no longer good',
  worker_unknown: 'The worker must register again',
  limit_in_use: 'A queue still uses the limit',
  closed: 'The program closed this Sluice; only in TypeScript',
  payload_too_large: 'The request is too large',
  unsupported_media_type: 'The content type is not supported',
  refused: 'Not accepted now; try again later',
  too_many_lanes: 'The queue has too many task types',
  headers_too_large: 'The headers are too large',
  internal: 'Something went wrong on our side',
  unavailable: 'A service we depend on is away; try again',
};

/** What the docs, and the problem documents on the wire, say of a code. */
export const errorCatalogue: Readonly<
  Record<ErrorCode, { readonly status: number; readonly title: string }>
> = catalogue();

function catalogue() {
  const codes = Object.keys(errorStatuses) as ErrorCode[];
  return Object.fromEntries(
    codes.map((code) => [code, { status: errorStatuses[code], title: errorTitles[code] }]),
  ) as Record<ErrorCode, { status: number; title: string }>;
}
