import type { Lease, TaskId } from '../domain/ids.js';
import type { ClaimedTask, Held } from '../protocol/api.js';
import { TaskAbortedError, type AbortCause } from './errors.js';

interface Running {
  readonly task: ClaimedTask;
  readonly abort: (reason: TaskAbortedError) => void;
}

/**
 * What runs here. By lease, not by task: a task whose lease was lost can be claimed again by the
 * same worker while its first handler still unwinds.
 */
export class InFlight {
  readonly #running = new Map<Lease, Running>();

  get size(): number {
    return this.#running.size;
  }

  get taskIds(): readonly TaskId[] {
    return [...this.#running.values()].map(({ task }) => task.taskId);
  }

  get held(): readonly Held[] {
    return [...this.#running.values()].map(({ task: { taskId, lease } }) => ({ taskId, lease }));
  }

  add(running: Running): void {
    this.#running.set(running.task.lease, running);
  }

  /** False when it was forgotten before. */
  remove(lease: Lease): boolean {
    return this.#running.delete(lease);
  }

  abort(taskIds: readonly TaskId[], why: AbortCause): void {
    if (taskIds.length === 0) return;
    const named = new Set(taskIds);
    for (const { task, abort } of this.#running.values()) {
      if (named.has(task.taskId)) abort(new TaskAbortedError(why));
    }
  }

  abortAll(why: AbortCause): void {
    for (const { abort } of this.#running.values()) abort(new TaskAbortedError(why));
  }

  /** Whatever their handlers still do, it is nobody's business any more. */
  forgetAll(): readonly Held[] {
    const { held } = this;
    this.#running.clear();
    return held;
  }
}
