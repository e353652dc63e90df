export { SluiceError } from '../domain/errors.js';
export type { AttemptError } from '../domain/attempt-error.js';
export type { WorkerApi } from '../protocol/workers-api.js';
export type { RetryPolicy } from './apply-retry-policy.js';
export {
  NonRetriableError,
  RateLimitedError,
  RetryAfterError,
  TaskAbortedError,
  UnavailableError,
  type AbortCause,
  type HandlerErrorOptions,
  type UnavailableErrorOptions,
} from './errors.js';
export type { HandlerContext, RunningTask, TaskHandler } from './handler.js';
export type { WorkerHealth } from './health.js';
export { createWorkerMetrics, type WorkerMetrics } from './metrics.js';
export type { WorkerObserver } from './observer.js';
export type { AttemptTrace, AttemptTracing } from './tracing.js';
export { Worker, type WorkerOptions } from './worker.js';
