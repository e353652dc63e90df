import type { TaskId } from '../domain/ids.js';
import type { OfferOutcome } from '../ready/ready-queue.js';
import type { ReadyRow } from '../store/task-row.js';

const againMs = 100;
const giveUpMs = 1_000;
/** Beyond that the sweeper's lap finds them. */
const maxHeld = 10_000;

/**
 * Offers that were answered `held`. Often it is the task's last attempt that is held: another server
 * ended it in Postgres, and this one was quicker to feed it than that one to free its slot. Until the
 * sweeper comes by nobody else would offer it again.
 */
export class HeldOffers {
  readonly #held = new Map<TaskId, { readonly row: ReadyRow; readonly sinceMs: number }>();
  #nextMs = Number.POSITIVE_INFINITY;

  /** When to offer them again, by `performance.now()`. */
  get nextMs(): number {
    return this.#nextMs;
  }

  /** As old as they are by now. */
  due(): readonly ReadyRow[] {
    const nowMs = performance.now();
    if (nowMs < this.#nextMs) return [];
    this.#nextMs = Number.POSITIVE_INFINITY;
    return [...this.#held.values()].map(({ row, sinceMs }) => ({
      ...row,
      ageMs: row.ageMs + nowMs - sinceMs,
    }));
  }

  settle(rows: readonly ReadyRow[], outcomes: readonly OfferOutcome[]): void {
    const nowMs = performance.now();
    rows.forEach((row, index) => {
      const known = this.#held.get(row.taskId);
      const sinceMs = known?.sinceMs ?? nowMs;
      if (outcomes[index] === 'held' && nowMs - sinceMs < giveUpMs) {
        if (known === undefined && this.#held.size >= maxHeld) return;
        this.#held.set(row.taskId, known ?? { row, sinceMs });
        // Not put off by those that came later, or with one every 100 ms none would ever be due.
        this.#nextMs = Math.min(this.#nextMs, nowMs + againMs);
      } else if (known !== undefined) {
        this.#held.delete(row.taskId);
      }
    });
  }

  clear(): void {
    this.#held.clear();
    this.#nextMs = Number.POSITIVE_INFINITY;
  }
}
