import type { AttemptError } from '../domain/attempt-error.js';
import type { TaskId } from '../domain/ids.js';
import { hasEnded, type TaskState } from '../domain/task-state.js';
import { bounds } from '../protocol/bounds.js';
import type {
  Cancellation,
  Explanation,
  Receipt,
  TaskApi,
  TaskView,
} from '../protocol/tasks-api.js';
import { outlastingOutages } from './outlasting-outages.js';
import type { Serialized } from './serialized.js';

/** The task ended without a result: `state` says how, `error` why, if its last attempt said so. */
export class TaskFailedError extends Error {
  override readonly name = 'TaskFailedError';
  readonly taskId: TaskId;
  readonly state: TaskState;
  readonly error: AttemptError | null;

  constructor({ taskId, status, error }: TaskView) {
    const why = error === null ? '' : `: ${error.code}: ${error.message}`;
    super(`Task ${taskId} ended as ${status}${why}`);
    this.taskId = taskId;
    this.state = status;
    this.error = error;
  }
}

/** The time was over before the task had ended; it goes on all the same. */
export class ResultTimeoutError extends Error {
  override readonly name = 'ResultTimeoutError';
  readonly taskId: TaskId;
  readonly state: TaskState;

  constructor({ taskId, status }: TaskView, timeoutMs: number) {
    super(`Task ${taskId} is still ${status} after ${timeoutMs} ms`);
    this.taskId = taskId;
    this.state = status;
  }
}

export interface ResultOptions {
  /** Absent: as long as it takes. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** One submitted task, from here. */
export class TaskHandle<Result> {
  readonly id: TaskId;
  readonly #api: TaskApi;
  readonly #accepted: Receipt | null;

  /** `accepted`: what its submit was answered, if it was submitted here. */
  constructor(id: TaskId, api: TaskApi, accepted: Receipt | null = null) {
    this.id = id;
    this.#api = api;
    this.#accepted = accepted;
  }

  /** Resolves when it completed; throws `TaskFailedError` when it ended otherwise. */
  async result(options: ResultOptions = {}): Promise<Serialized<Result>> {
    const task = await this.ended(options);
    if (task.status !== 'completed') throw new TaskFailedError(task);
    return task.result as Serialized<Result>;
  }

  /** The task when it has ended, whichever way. */
  async ended({ timeoutMs = Infinity, signal }: ResultOptions = {}): Promise<TaskView> {
    const endsAt = performance.now() + timeoutMs;
    for (;;) {
      signal?.throwIfAborted();
      const leftMs = Math.max(0, endsAt - performance.now());
      const waitMs = Math.min(leftMs, bounds.waitSeconds * 1000);
      const task = await outlastingOutages(
        () => this.#api.waitForTask(this.id, waitMs, signal),
        signal,
      );
      if (hasEnded(task.status)) return task;
      if (performance.now() >= endsAt) throw new ResultTimeoutError(task, timeoutMs);
    }
  }

  status(): Promise<TaskView> {
    return this.#api.getTask(this.id);
  }

  /** Why it is not running, its position in its queue and how long it will wait, about. */
  explain(): Promise<Explanation> {
    return this.#api.explainTask(this.id);
  }

  /**
   * The receipt of its submit, with its state, position and estimated wait as they are now. `created` is
   * false when another submit made the task.
   */
  async receipt(): Promise<Receipt> {
    const now = await this.explain();
    const { status, queuePosition, estimatedWaitSeconds, estimatedStartTime } = now;
    const accepted = this.#accepted ?? receiptOf(await this.status());
    return { ...accepted, status, queuePosition, estimatedWaitSeconds, estimatedStartTime };
  }

  /** A handler that runs is told through its signal. */
  cancel(): Promise<Cancellation> {
    return this.#api.cancelTask(this.id);
  }
}

function receiptOf({ taskId, status, queue, priority, traceId, createdAt }: TaskView): Receipt {
  const unknown = {
    queuePosition: null,
    estimatedWaitSeconds: null,
    estimatedStartTime: null,
    created: false,
  };
  return { taskId, status, queue, priority, traceId, createdAt, ...unknown };
}
