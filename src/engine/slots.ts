import type { TaskId } from '../domain/ids.js';
import type { Finished, Grant, Out, OutCursor } from '../ready/ready-queue.js';
import { findLeased } from '../store/find-attempts.js';
import type { EngineContext } from './context.js';

/** Younger ones are just being claimed or finished. */
const quietMs = 2_000;
/** How long a taken entry may wait for its claim: longer than any claim is under way. */
const unclaimedMs = 10_000;

/** What runs holds a slot of its queue: given when Postgres grants it, freed when it ends. */
export class Slots {
  readonly #context: EngineContext;
  #cursor: OutCursor | null = null;
  /** Had no lease in Postgres, one lap ago: an end is told right after it was written. */
  #suspects = new Map<TaskId, string>();
  #newSuspects = new Map<TaskId, string>();

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** Postgres granted these. */
  async confirm(grants: readonly Grant[]): Promise<void> {
    if (grants.length > 0) await this.#context.ready.confirm(grants);
  }

  async free(finished: readonly Finished[]): Promise<void> {
    if (finished.length > 0) await this.#context.ready.finish(finished);
  }

  /**
   * A stretch of what the ready queue takes for taken or running is compared with Postgres: the
   * process that took or ended it may have died before it could say so.
   */
  async compare(limit: number): Promise<void> {
    const { ready, db } = this.#context;
    const { entries, next } = await ready.listOut(this.#cursor, limit);
    const quiet = entries.filter(({ forMs }) => forMs >= quietMs);
    if (quiet.length > 0) {
      const leased = await findLeased(
        db,
        quiet.map(({ taskId }) => taskId),
      );
      await this.#settle(quiet, (taskId) => leased.has(taskId));
    }
    this.#cursor = next;
    if (next !== null) return;
    this.#suspects = this.#newSuspects;
    this.#newSuspects = new Map();
  }

  async #settle(out: readonly Out[], isLeased: (taskId: TaskId) => boolean): Promise<void> {
    const { ready } = this.#context;
    const running = out.filter(({ taskId }) => isLeased(taskId));
    await this.confirm(running.filter(({ confirmed }) => !confirmed));
    const ended = out.filter((entry) => !isLeased(entry.taskId) && this.#isSuspectAgain(entry));
    await this.free(
      ended
        .filter(({ confirmed }) => confirmed)
        .map(({ taskId, grant, queue }) => ({ taskId, grant, queue, reserved: {}, usage: null })),
    );
    const unclaimed = ended.filter(({ confirmed, forMs }) => !confirmed && forMs >= unclaimedMs);
    if (unclaimed.length > 0) await ready.refund(unclaimed);
  }

  #isSuspectAgain({ taskId, grant }: Out): boolean {
    this.#newSuspects.set(taskId, grant);
    return this.#suspects.get(taskId) === grant;
  }
}
