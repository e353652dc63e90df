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
  /** Whose leases are gone, while their handlers still unwind, or ignore it. */
  readonly #lost = new Set<Lease>();

  get size(): number {
    return this.#running.size;
  }

  /**
   * Not those whose lease was lost: nothing will be reported of them, and to name them would keep
   * from others what a handler that ignores its signal may run until its timeout.
   */
  get taskIds(): readonly TaskId[] {
    return [...this.#running.values()]
      .filter(({ task }) => !this.#lost.has(task.lease))
      .map(({ task }) => task.taskId);
  }

  get held(): readonly Held[] {
    return [...this.#running.values()].map(({ task: { taskId, lease } }) => ({ taskId, lease }));
  }

  add(running: Running): void {
    this.#running.set(running.task.lease, running);
  }

  /** False when it was forgotten before. */
  remove(lease: Lease): boolean {
    this.#lost.delete(lease);
    return this.#running.delete(lease);
  }

  abort(taskIds: readonly TaskId[], why: AbortCause): void {
    if (taskIds.length === 0) return;
    const named = new Set(taskIds);
    for (const running of this.#running.values()) {
      if (named.has(running.task.taskId)) this.#abort(running, why);
    }
  }

  abortAll(why: AbortCause): void {
    for (const running of this.#running.values()) this.#abort(running, why);
  }

  /** Whatever their handlers still do, it is nobody's business any more. */
  forgetAll(): readonly Held[] {
    const { held } = this;
    this.#running.clear();
    this.#lost.clear();
    return held;
  }

  #abort({ task, abort }: Running, why: AbortCause): void {
    if (why === 'lease_lost') this.#lost.add(task.lease);
    abort(new TaskAbortedError(why));
  }
}
