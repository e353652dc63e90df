import type { PriorityRank } from '../domain/priority.js';
import { IndexedHeap, type Placed } from './indexed-heap.js';
import type { SharedLimit } from './shared-limits.js';

/** A lane's place among those that may be taken from. */
export interface Turn<L> extends Placed {
  readonly lane: L;
  /** Of the lane's most urgent head. */
  level: PriorityRank;
  /** Of its queue when last looked at: too small, never too large, once served elsewhere. */
  turn: number;
}

export interface Alarm<L> extends Placed {
  readonly lane: L;
  atMs: number;
}

/** What a group needs to know of a lane to give it its turn. */
export interface GroupLane<L> {
  readonly turn: Turn<L>;
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
  readonly #index = new IndexedHeap<Turn<L>>(comesFirst);
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
    return (this.#index.peek() ?? this.#parked.peek())?.lane ?? null;
  }

  /** To be told when a lane's heads have changed, or its queue may have opened to them. */
  reopen(lane: L, nowMs: number): void {
    this.#unpark(lane);
    // The promotion of a lane that emptied stays where it is: a heap of thousands would be put in
    // order for it, and the lane's next task needs it again.
    if (lane.size === 0) displace(this.#index, lane.turn);
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
    displace(this.#index, lane.turn);
    displace(this.#promotions, lane.promotion);
  }

  /** Makes every level in the index, and every parking, true for this instant. */
  catchUp(nowMs: number): void {
    for (let due = this.#parked.peek(); due !== undefined && due.atMs <= nowMs;) {
      this.reopen(due.lane, nowMs);
      due = this.#parked.peek();
    }
    for (let due = this.#promotions.peek(); due !== undefined && due.atMs <= nowMs;) {
      if (due.lane.size === 0) displace(this.#promotions, due);
      else this.reopen(due.lane, nowMs);
      due = this.#promotions.peek();
    }
  }

  /** The lane whose turn it is, of those that are not parked. To be asked once caught up. */
  first(): L | null {
    while (true) {
      const turn = this.#index.peek();
      if (turn === undefined) return null;
      const { lane } = turn;
      if (turn.turn === lane.queue.turn) return lane;
      turn.turn = lane.queue.turn;
      this.#index.update(turn);
    }
  }

  park(lane: L, untilMs: number): void {
    // Its promotion stays due: another head may come first then, and cost less.
    displace(this.#index, lane.turn);
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
    const { turn, promotion } = lane;
    turn.level = lane.levelAt(nowMs);
    turn.turn = lane.queue.turn;
    place(this.#index, turn);
    promotion.atMs = lane.promotesAt(nowMs);
    if (promotion.atMs < Number.POSITIVE_INFINITY) place(this.#promotions, promotion);
    else displace(this.#promotions, promotion);
  }

  #unpark(lane: L): void {
    if (lane.parking === null || lane.parking.place < 0) return;
    this.#parked.remove(lane.parking);
    lane.queue.unpark(lane);
  }
}

function comesFirst<L>(a: Turn<L>, b: Turn<L>): boolean {
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
