import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { Cost } from '../domain/queue-settings.js';
import type { TaskDefaults } from '../protocol/task-types-api.js';
import type { ClaimedTask } from '../protocol/workers-api.js';
import type { Logger } from '../runtime/log.js';
import type { RetryPolicy } from './apply-retry-policy.js';

/** A claimed task without its lease: whoever holds that may write. */
export type RunningTask = Omit<ClaimedTask, 'lease'>;

export interface HandlerContext {
  /** Fires at the timeout, when the task is cancelled, and when the worker must let go of it. */
  readonly signal: AbortSignal;
  /** Counts from 1, over all workers. */
  readonly attempt: number;
  readonly task: RunningTask;
  /** Every line carries the task's id, type, attempt and trace. */
  readonly log: Logger;
  /** Costs the handler nothing: what was last said is sent when the line is free. */
  readonly progress: (percent: number, message?: string) => void;
  /**
   * What the call really cost, like `{ tokens: 1834 }`: goes with the result, and the limits of the
   * queue are settled with it. Said again, the last one counts.
   */
  readonly usage: (used: Cost) => void;
}

/** What a worker needs to know about a task type; `defineTask` makes one. */
export interface TaskHandler extends TaskDefaults {
  readonly type: string;
  readonly input?: StandardSchemaV1 | undefined;
  readonly retry?: RetryPolicy | undefined;
  run(input: unknown, context: HandlerContext): unknown;
}
