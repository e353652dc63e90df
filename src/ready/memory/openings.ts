import type { Cost } from '../../domain/queue-settings.js';
import type { OutEntry } from './out-list.js';
import type { Queue } from './ready-lane.js';
import type { Finished } from '../ready-queue.js';

/**
 * What slots and tokens that come back do to queues, gathered over one call so that each queue is
 * woken once. Tokens that are lost count as well: what was parked by the old level may be short now.
 */
export class Openings {
  /** Queues whose own tokens are not what they were. */
  readonly changed = new Set<Queue>();
  /** Names of shared limits that have more than before. */
  readonly raisedShared = new Set<string>();
  readonly #raised = new Set<Queue>();
  readonly #wereFull = new Set<Queue>();
  readonly nowMs: number;

  constructor(nowMs: number) {
    this.nowMs = nowMs;
  }

  /** Those that somebody who waits may be able to take from. */
  get opened(): Set<Queue> {
    const freed = [...this.#wereFull].filter(({ places }) => places > 0);
    return new Set([...this.#raised, ...freed]);
  }

  freeSlot({ queue, confirmed }: OutEntry): void {
    if (queue.places <= 0) this.#wereFull.add(queue);
    queue.slotsInUse -= 1;
    if (confirmed) queue.running -= 1;
  }

  refund({ queue, cost, grant, number }: OutEntry): void {
    queue.refundProbe(number);
    // Tokens go back to the limits that it paid.
    if (number <= queue.limitsAfterOut) return;
    for (const bucket of queue.own) this.#note(queue, bucket.refund(cost, grant, this.nowMs));
    for (const { name, bucket } of queue.shared) {
      if ((bucket?.refund(cost, grant, this.nowMs) ?? 0) > 0) this.raisedShared.add(name);
    }
  }

  /** Tokens come back together with the slot: of what holds none any more only the debt is booked. */
  settle(queue: Queue, { reserved, usage }: Finished, holdsSlot: boolean): void {
    if (usage === null) return;
    const settled = holdsSlot ? usage : usedBesides(reserved, usage);
    for (const bucket of queue.own) {
      this.#note(queue, bucket.settle(reserved, settled, this.nowMs));
    }
    for (const { name, bucket } of queue.shared) {
      if ((bucket?.settle(reserved, settled, this.nowMs) ?? 0) > 0) this.raisedShared.add(name);
    }
  }

  #note(queue: Queue, change: number): void {
    if (change !== 0) this.changed.add(queue);
    if (change > 0) this.#raised.add(queue);
  }
}

/** The units of which more was used than reserved. */
function usedBesides(reserved: Cost, usage: Cost): Cost {
  return Object.fromEntries(
    Object.entries(usage).filter(([unit, used]) => used > (reserved[unit] ?? 0)),
  );
}
