// `sluice/client`: what submits and reads, in any runtime that has `fetch`. Node gets `node.ts` instead.
import type { ClientApi } from '../protocol/api.js';
import { connecting } from './connecting.js';
import { openFetchSender } from './fetch-sender.js';
import { HttpApi } from './http-api.js';
import { SluiceClient } from './sluice-client.js';

/** A server that runs elsewhere, over HTTP. For workers there is `connect` of `sluice`. */
export const connect = connecting(
  SluiceClient<ClientApi>,
  (url, options) => new HttpApi(url, options, openFetchSender),
);

export { SluiceError, type ErrorCode, type FieldError } from '../domain/errors.js';
export type { TaskId, WorkerId } from '../domain/ids.js';
export type { JsonObject, JsonValue } from '../domain/json.js';
export type { Priority } from '../domain/priority.js';
export type { TaskState } from '../domain/task-state.js';
export type { Actor, AuditAction, AuditChanges } from '../domain/audit.js';
export type * from '../protocol/api.js';
export type * from '../protocol/audit-api.js';
export type * from '../protocol/caller.js';
export type * from '../protocol/dead-letters-api.js';
export type * from '../protocol/keys-api.js';
export type * from '../protocol/page.js';
export type * from '../protocol/queues-api.js';
export type * from '../protocol/scaling-api.js';
export type * from '../protocol/statistics-api.js';
export type * from '../protocol/task-types-api.js';
export type * from '../protocol/tasks-api.js';
export type * from '../protocol/workers-api.js';
export type { ConnectOptions } from './connecting.js';
export { defineTask, type TaskDefinition, type TaskOptions } from './define-task.js';
export type { SubmitOptions } from './draft.js';
export type { QueueControl, SluiceClient, Submission, SubmittedTask } from './sluice-client.js';
export {
  ResultTimeoutError,
  TaskFailedError,
  TaskHandle,
  type ResultOptions,
} from './task-handle.js';
export type { Tracing } from './tracing.js';
export type { RetryPolicy } from '../worker/apply-retry-policy.js';
export type { HandlerContext, RunningTask, TaskHandler } from '../worker/handler.js';
