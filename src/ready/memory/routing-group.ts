import type { PriorityRank } from '../../domain/priority.js';
import { IndexedHeap, type Placed } from '../indexed-heap.js';
import type { SharedLimit } from './shared-limits.js';

export interface Alarm<L> extends Placed {
  readonly lane: L;
  atMs: number;
}

/** What a group needs to know of a lane to give it its turn; its place is among those that may be taken from. */
export interface GroupLane<L> extends Placed {
  /** Of its most urgent head when last looked at. */
  level: PriorityRank;
  /** Of its queue when last looked at: too small, never too large, once served elsewhere. */
  turn: number;
  readonly promotion: Alarm<L>;
  /** Null until first parked: most lanes never are. */
  parking: Alarm<L> | null;
  readonly size: number;
  readonly queue: {
    readonly turn: number;
    park(lane: L): void;
    unpark(lane: L): void;
  };
  levelAt(nowMs: number): PriorityRank;
  promotesAt(nowMs: number): number;
  opensAt(nowMs: number): number;
}

/** Who is in a group: lanes of one task type and capability set, whose queues share the same limits. */
export interface GroupTraits {
  readonly taskType: string;
  readonly capabilities: readonly string[];
  /** Sorted by name. */
  readonly shared: readonly SharedLimit[];
}

/**
 * The lanes of one task type and one capability set: a worker can do all of them or none, so it
 * never looks at work it can't do. Their queues share the same limits: when one of them waits for
 * those, the others need not be looked at. A lane that holds something is either in the index, by
 * level and turn, or parked until its queue opens to it. Time passes when somebody looks:
 * promotions and openings that fell due are caught up with then, and no timer runs.
 */
export class RoutingGroup<L extends GroupLane<L>> implements GroupTraits {
  readonly key: string;
  /** The part of the key that a lane has, whatever its queue shares: see `routingGroupKey`. */
  readonly route: string;
  readonly taskType: string;
  readonly capabilities: readonly string[];
  readonly shared: readonly SharedLimit[];
  /** Lanes that exist, with or without entries. */
  laneCount = 0;
  readonly #index = new IndexedHeap<L>(comesFirst);
  readonly #promotions = new IndexedHeap<Alarm<L>>(isEarlier);
  readonly #parked = new IndexedHeap<Alarm<L>>(isEarlier);

  constructor(key: string, route: string, { taskType, capabilities, shared }: GroupTraits) {
    this.key = key;
    this.route = route;
    this.taskType = taskType;
    this.capabilities = capabilities;
    this.shared = shared;
  }

  get holdsNothing(): boolean {
    return this.#index.size === 0 && this.#parked.size === 0;
  }

  /** Some lane that holds something. */
  get anyLane(): L | null {
    return this.#index.peek() ?? this.#parked.peek()?.lane ?? null;
  }

  /** To be told when a lane's heads have changed, or its queue may have opened to them. */
  reopen(lane: L, nowMs: number): void {
    this.#unpark(lane);
    if (lane.size === 0) displace(this.#index, lane);
    else this.#enterIndex(lane, nowMs);
  }

  reopenAll(nowMs: number): void {
    for (let first = this.#parked.peek(); first !== undefined; first = this.#parked.peek()) {
      this.reopen(first.lane, nowMs);
    }
  }

  /** A lane that moves to another group, or is forgotten. */
  leave(lane: L): void {
    this.#unpark(lane);
    displace(this.#index, lane);
    displace(this.#promotions, lane.promotion);
  }

  /** Makes every level in the index, and every parking, true for this instant. */
  catchUp(nowMs: number): void {
    for (let due = this.#parked.peek(); due !== undefined && due.atMs <= nowMs;) {
      this.reopen(due.lane, nowMs);
      due = this.#parked.peek();
    }
    for (let due = this.#promotions.peek(); due !== undefined && due.atMs <= nowMs;) {
      this.#promotions.remove(due);
      if (due.lane.size > 0) this.reopen(due.lane, nowMs);
      due = this.#promotions.peek();
    }
  }

  /** The lane whose turn it is, of those that are not parked. To be asked once caught up. */
  first(): L | null {
    while (true) {
      const lane = this.#index.peek();
      if (lane === undefined) return null;
      if (lane.turn === lane.queue.turn) return lane;
      lane.turn = lane.queue.turn;
      this.#index.update(lane);
    }
  }

  park(lane: L, untilMs: number): void {
    // Its promotion stays due: another head may come first then, and cost less.
    displace(this.#index, lane);
    lane.parking ??= { place: -1, lane, atMs: untilMs };
    lane.parking.atMs = untilMs;
    place(this.#parked, lane.parking);
    lane.queue.park(lane);
  }

  /** When the first parked lane opens; infinity: not before something happens. */
  opensAt(nowMs: number): number {
    while (true) {
      const parking = this.#parked.peek();
      if (parking === undefined) return Number.POSITIVE_INFINITY;
      const opensAt = parking.lane.opensAt(nowMs);
      if (opensAt === parking.atMs) return opensAt;
      parking.atMs = opensAt;
      this.#parked.update(parking);
    }
  }

  #enterIndex(lane: L, nowMs: number): void {
    lane.level = lane.levelAt(nowMs);
    lane.turn = lane.queue.turn;
    place(this.#index, lane);
    this.#promoteBy(lane.promotion, lane.promotesAt(nowMs));
  }

  /**
   * One that is due too early stays where it is, and is looked at in vain: a heap of thousands would
   * be put in order whenever a head leaves.
   */
  #promoteBy(promotion: Alarm<L>, atMs: number): void {
    const isDueBefore = promotion.place >= 0 && promotion.atMs <= atMs;
    if (isDueBefore || atMs === Number.POSITIVE_INFINITY) return;
    promotion.atMs = atMs;
    place(this.#promotions, promotion);
  }

  #unpark(lane: L): void {
    if (lane.parking === null || lane.parking.place < 0) return;
    this.#parked.remove(lane.parking);
    lane.queue.unpark(lane);
  }
}

function comesFirst<L>(a: GroupLane<L>, b: GroupLane<L>): boolean {
  return a.level === b.level ? a.turn < b.turn : a.level < b.level;
}

function isEarlier<L>(a: Alarm<L>, b: Alarm<L>): boolean {
  return a.atMs < b.atMs;
}

function place<T extends Placed>(heap: IndexedHeap<T>, item: T): void {
  if (item.place < 0) heap.push(item);
  else heap.update(item);
}

function displace<T extends Placed>(heap: IndexedHeap<T>, item: T): void {
  if (item.place >= 0) heap.remove(item);
}
