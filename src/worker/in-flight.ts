import type { Lease, TaskId } from '../domain/ids.js';
import type { ClaimedTask, Held } from '../protocol/workers-api.js';
import { TaskAbortedError, type AbortCause } from './errors.js';
import type { Stop } from './stop.js';

interface Running {
  readonly task: ClaimedTask;
  readonly stop: Pick<Stop, 'abort'>;
}

/** Longer than an answer is on its way; a task replayed within it goes back to its queue once. */
const aheadMs = 5_000;
const maxAhead = 1_000;

/**
 * What runs here. By lease, not by task: a task whose lease was lost can be claimed again by the
 * same worker while its first handler still unwinds.
 */
export class InFlight {
  readonly #running = new Map<Lease, Running>();
  /** Told to stop, while their handlers still unwind, or ignore it. The first reason counts. */
  readonly #aborted = new Map<Lease, AbortCause>();
  /** Cancelled, and not here yet: the answer that brings the task was overtaken by the news. */
  readonly #cancelledAhead = new Map<TaskId, number>();

  get size(): number {
    return this.#running.size;
  }

  /**
   * Not those whose lease was lost: nothing will be reported of them, and to name them would keep
   * from others what a handler that ignores its signal may run until its timeout. Those that were
   * cancelled stay: a member keeps its workflow's place for as long as it is named.
   */
  get named(): readonly Held[] {
    return [...this.#running.values()]
      .filter(({ task }) => this.#aborted.get(task.lease) !== 'lease_lost')
      .map(({ task: { taskId, lease } }) => ({ taskId, lease }));
  }

  get held(): readonly Held[] {
    return [...this.#running.values()].map(({ task: { taskId, lease } }) => ({ taskId, lease }));
  }

  add(running: Running): void {
    const { lease, taskId } = running.task;
    this.#running.set(lease, running);
    const cancelledAt = this.#cancelledAhead.get(taskId);
    if (cancelledAt === undefined) return;
    this.#cancelledAhead.delete(taskId);
    if (performance.now() - cancelledAt < aheadMs) this.#abort(running, 'cancelled');
  }

  /** False when it was forgotten before. */
  remove(lease: Lease): boolean {
    this.#aborted.delete(lease);
    return this.#running.delete(lease);
  }

  abort(taskIds: readonly TaskId[], why: AbortCause): void {
    if (taskIds.length === 0) return;
    const named = new Set(taskIds);
    const found = new Set<TaskId>();
    for (const running of this.#running.values()) {
      if (!named.has(running.task.taskId)) continue;
      found.add(running.task.taskId);
      this.#abort(running, why);
    }
    if (why === 'cancelled') this.#awaitCancelled(taskIds.filter((taskId) => !found.has(taskId)));
  }

  abortAll(why: AbortCause): void {
    for (const running of this.#running.values()) this.#abort(running, why);
  }

  /** Whatever their handlers still do, it is nobody's business any more. */
  forgetAll(): readonly Held[] {
    const { held } = this;
    this.#running.clear();
    this.#aborted.clear();
    return held;
  }

  #awaitCancelled(taskIds: readonly TaskId[]): void {
    if (this.#cancelledAhead.size > maxAhead) this.#cancelledAhead.clear();
    for (const taskId of taskIds) this.#cancelledAhead.set(taskId, performance.now());
  }

  #abort({ task, stop }: Running, why: AbortCause): void {
    if (!this.#aborted.has(task.lease)) this.#aborted.set(task.lease, why);
    stop.abort(new TaskAbortedError(why));
  }
}
