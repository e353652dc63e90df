import { reachesTask, type Confinement } from '../domain/confinement.js';
import { SluiceError } from '../domain/errors.js';
import type { TaskId } from '../domain/ids.js';
import { hasEnded, type TaskState } from '../domain/task-state.js';
import { bounds } from '../protocol/bounds.js';
import type { TaskView } from '../protocol/tasks-api.js';
import { Batcher } from '../runtime/batcher.js';
import { findPlace, findStates, findTask } from '../store/read-tasks.js';
import { instant, judgeDatabaseFailure, type EngineContext } from './context.js';

/** An end that another process brought about is seen after this long. */
const lookAgainMs = 1_000;
const maxStatesAtOnce = 1_000;
/** Parameters, result, its error and that of its last attempt, each with details. */
const taskBytes = 3 * bounds.taskBytes + bounds.resultBytes;

export function taskNotFound(taskId: TaskId): SluiceError {
  const detail = `There is no task ${taskId}: it never was, or it ended too long ago to be kept.`;
  return new SluiceError('task_not_found', detail);
}

/** Reads a task, and waits for its end. */
export class Read {
  readonly #context: EngineContext;
  readonly #states: Batcher<TaskId, TaskState | undefined>;

  constructor(context: EngineContext) {
    this.#context = context;
    this.#states = new Batcher({
      maxItems: maxStatesAtOnce,
      judge: judgeDatabaseFailure,
      flush: async (taskIds) => {
        const states = await findStates(context.db, taskIds);
        return taskIds.map((taskId) => states.get(taskId));
      },
    });
  }

  async getTask(taskId: TaskId, history: boolean): Promise<TaskView> {
    const { db, answers } = this.#context;
    const task = await answers.within(taskBytes + (history ? bounds.answerBytes : 0), () =>
      findTask(db.reads, taskId, history, instant(this.#context)),
    );
    if (task === null) throw taskNotFound(taskId);
    return task;
  }

  /**
   * A write that answers with its task. Room for the answer is reserved first, and the task is read without a turn
   * among reads: what was written must not look refused.
   */
  write(taskId: TaskId, write: () => Promise<unknown>): Promise<TaskView> {
    const { db, answers } = this.#context;
    return answers.withinWrites(taskBytes, async () => {
      await write();
      const task = await findTask(db, taskId, false, instant(this.#context));
      if (task === null) throw taskNotFound(taskId);
      return task;
    });
  }

  /** Queue and owner of a task never change, so that this holds for whatever is done with it next. */
  async refuseUnreached(taskId: TaskId, within: Confinement): Promise<void> {
    const place = await findPlace(this.#context.db, taskId);
    if (place === null || !reachesTask(within, place)) throw taskNotFound(taskId);
  }

  /** The task when it ended, or as it is when the time is over. */
  async waitForTask(taskId: TaskId, timeoutMs: number, signal?: AbortSignal): Promise<TaskView> {
    const endsAtMs = performance.now() + timeoutMs;
    for (;;) {
      // Watching begins before the look, so that an end in between is not missed.
      const end = new EndWatch(this.#context, taskId, signal);
      try {
        const state = await this.#states.add(taskId);
        if (state === undefined) throw taskNotFound(taskId);
        const leftMs = endsAtMs - performance.now();
        if (hasEnded(state) || leftMs <= 0 || signal?.aborted === true) break;
        await end.within(Math.min(leftMs, lookAgainMs));
      } finally {
        end.stop();
      }
    }
    return this.getTask(taskId, false);
  }
}

class EndWatch {
  readonly #ended: Promise<void>;
  #end: () => void = () => undefined;
  readonly #stop: () => void;

  constructor({ events }: EngineContext, taskId: TaskId, signal: AbortSignal | undefined) {
    this.#ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    const end = this.#end;
    const unsubscribe = events.onEnd(taskId, end);
    signal?.addEventListener('abort', end, { once: true });
    this.#stop = () => {
      unsubscribe();
      signal?.removeEventListener('abort', end);
    };
  }

  async within(ms: number): Promise<void> {
    const timer = setTimeout(this.#end, ms);
    await this.#ended;
    clearTimeout(timer);
  }

  stop(): void {
    this.#stop();
  }
}
