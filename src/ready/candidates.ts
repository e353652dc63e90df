import { isTakenBefore, type ReadyLane } from './ready-lane.js';
import type { RoutingGroup } from './routing-group.js';

/** What one request may take from. */
export interface Candidates {
  /** The lane whose turn it is now, if any may be taken from. */
  next(nowMs: number): ReadyLane | null;
  /** When one of them opens; infinity: not before something happens. To be asked without a next. */
  opensAt(nowMs: number): number;
}

/**
 * Every queue. Comparing the first lane of each group is exact: a queue has one lane in a group,
 * so the queue whose turn it is stands first in every group where it is that urgent.
 */
export class GroupCandidates implements Candidates {
  readonly #groups: readonly RoutingGroup<ReadyLane>[];

  constructor(groups: readonly RoutingGroup<ReadyLane>[]) {
    this.#groups = groups;
  }

  next(nowMs: number): ReadyLane | null {
    let best: ReadyLane | null = null;
    for (const group of this.#groups) {
      const lane = group.first(nowMs);
      if (lane !== null && (best === null || comesBefore(lane, best, nowMs))) best = lane;
    }
    return best;
  }

  opensAt(nowMs: number): number {
    let first = Number.POSITIVE_INFINITY;
    for (const group of this.#groups) first = Math.min(first, group.opensAt(nowMs));
    return first;
  }
}

/** The queues that a request names: their lanes are looked at one by one, and no others. */
export class LaneCandidates implements Candidates {
  readonly #lanes: readonly ReadyLane[];

  constructor(lanes: readonly ReadyLane[]) {
    this.#lanes = lanes;
  }

  next(nowMs: number): ReadyLane | null {
    let best: ReadyLane | null = null;
    for (const lane of this.#lanes) {
      if (lane.size === 0 || lane.queue.opensAt(nowMs) > nowMs) continue;
      lane.group.catchUp(nowMs);
      if (best === null || comesBefore(lane, best, nowMs)) best = lane;
    }
    return best;
  }

  opensAt(nowMs: number): number {
    let first = Number.POSITIVE_INFINITY;
    for (const lane of this.#lanes) {
      if (lane.size > 0) first = Math.min(first, lane.queue.opensAt(nowMs));
    }
    return first;
  }
}

/** The order between queues, and between the lanes of one; for lanes that are in their index. */
function comesBefore(a: ReadyLane, b: ReadyLane, nowMs: number): boolean {
  if (a.turn.level !== b.turn.level) return a.turn.level < b.turn.level;
  if (a.queue !== b.queue) return a.queue.turn < b.queue.turn;
  const headA = a.head(nowMs);
  const headB = b.head(nowMs);
  return headA !== null && headB !== null && isTakenBefore(headA, headB, nowMs);
}
