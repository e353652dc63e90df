import type { TaskId } from '../domain/ids.js';
import type { Cost } from '../domain/queue-settings.js';
import type { Held } from '../protocol/api.js';
import type { Finished, Grant } from '../ready/ready-queue.js';
import { findAttempts } from '../store/find-attempts.js';
import type { EngineContext } from './context.js';

interface Running extends Held {
  readonly queue: string;
  readonly cost: Cost;
}

interface Slot extends Running {
  /** Its lease was found to be gone, one look ago. */
  suspect: boolean;
}

/** What runs, as far as this process knows: each task holds a slot of its queue. */
export class Slots {
  readonly #context: EngineContext;
  /** In the order in which they are looked at again. */
  readonly #slots = new Map<TaskId, Slot>();

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** After the ready queue was restored with the same. */
  restore(running: readonly Running[]): void {
    this.#slots.clear();
    this.#remember(running);
  }

  /** Postgres granted these. */
  async confirm(running: readonly Running[], grants: readonly Grant[]): Promise<void> {
    this.#remember(running);
    await this.#context.ready.confirm(grants);
  }

  async free(finished: readonly Finished[]): Promise<void> {
    if (finished.length === 0) return;
    for (const { taskId } of finished) this.#slots.delete(taskId);
    await this.#context.ready.finish(finished);
  }

  /**
   * What another process ended, by cancelling it, would keep its slot here for ever, and could not
   * be offered when it is replayed. Found missing twice: an end of our own is told in between.
   */
  async freeEnded(limit: number): Promise<void> {
    const looked = [...this.#slots.values()].slice(0, limit);
    if (looked.length === 0) return;
    const living = await findAttempts(this.#context.db, looked);
    const good = new Set(living.map(({ lease }) => lease));
    const ended = looked.filter((slot) => this.#judge(slot, good.has(slot.lease)));
    await this.free(
      ended.map(({ taskId, queue, cost }) => ({ taskId, queue, reserved: cost, usage: null })),
    );
  }

  #judge(slot: Slot, isGood: boolean): boolean {
    if (this.#slots.get(slot.taskId) !== slot) return false;
    if (!isGood && slot.suspect) return true;
    slot.suspect = !isGood;
    this.#slots.delete(slot.taskId);
    this.#slots.set(slot.taskId, slot);
    return false;
  }

  #remember(running: readonly Running[]): void {
    for (const { taskId, lease, queue, cost } of running) {
      this.#slots.set(taskId, { taskId, lease, queue, cost, suspect: false });
    }
  }
}
