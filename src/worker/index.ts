export { SluiceError } from '../domain/errors.js';
export type { WorkerApi } from '../protocol/api.js';
export {
  NonRetriableError,
  RateLimitedError,
  RetryAfterError,
  TaskAbortedError,
  type AbortCause,
  type HandlerErrorOptions,
} from './errors.js';
export type { HandlerContext, RunningTask, TaskHandler } from './handler.js';
export { createWorkerMetrics, type WorkerMetrics } from './metrics.js';
export type { WorkerObserver } from './observer.js';
export { Worker, type WorkerOptions } from './worker.js';
