import type { PriorityRank } from '../domain/priority.js';
import { IndexedHeap, type Placed } from './indexed-heap.js';

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
  readonly parking: Alarm<L>;
  readonly size: number;
  readonly queue: {
    readonly turn: number;
    readonly parked: Set<L>;
    opensAt(nowMs: number): number;
  };
  levelAt(nowMs: number): PriorityRank;
  promotesAt(level: PriorityRank): number;
}

/**
 * The lanes of one task type and one capability set: a worker can do all of them or none, so it
 * never looks at work it can't do. A lane that holds something is either in the index, by level
 * and turn, or parked until its queue opens. Time passes when somebody looks: promotions and
 * openings that fell due are caught up with then, and no timer runs.
 */
export class RoutingGroup<L extends GroupLane<L>> {
  readonly key: string;
  readonly taskType: string;
  readonly capabilities: readonly string[];
  /** Lanes that exist, with or without entries. */
  laneCount = 0;
  readonly #index = new IndexedHeap<Turn<L>>(comesFirst);
  readonly #promotions = new IndexedHeap<Alarm<L>>(isEarlier);
  readonly #parked = new IndexedHeap<Alarm<L>>(isEarlier);

  constructor(key: string, taskType: string, capabilities: readonly string[]) {
    this.key = key;
    this.taskType = taskType;
    this.capabilities = capabilities;
  }

  get holdsNothing(): boolean {
    return this.#index.size === 0 && this.#parked.size === 0;
  }

  /** To be told when a lane's heads, or what its queue thinks of them, have changed. */
  settle(lane: L, nowMs: number): void {
    if (lane.size === 0) {
      this.#unpark(lane);
      this.#leaveIndex(lane);
    } else if (lane.parking.place < 0) {
      this.#enterIndex(lane, nowMs);
    }
  }

  /** To be told when the lane's queue may have opened. */
  reopen(lane: L, nowMs: number): void {
    this.#unpark(lane);
    this.settle(lane, nowMs);
  }

  /** The lane whose turn it is, of those whose queues may be taken from now. */
  first(nowMs: number): L | null {
    this.#catchUp(nowMs);
    while (true) {
      const turn = this.#index.peek();
      if (turn === undefined) return null;
      const { lane } = turn;
      if (turn.turn !== lane.queue.turn) {
        turn.turn = lane.queue.turn;
        this.#index.update(turn);
        continue;
      }
      const opensAt = lane.queue.opensAt(nowMs);
      if (opensAt <= nowMs) return lane;
      this.#park(lane, opensAt);
    }
  }

  /** When the first parked lane opens; infinity: not before something happens. */
  opensAt(nowMs: number): number {
    while (true) {
      const parking = this.#parked.peek();
      if (parking === undefined) return Number.POSITIVE_INFINITY;
      const opensAt = parking.lane.queue.opensAt(nowMs);
      if (opensAt === parking.atMs) return opensAt;
      parking.atMs = opensAt;
      this.#parked.update(parking);
    }
  }

  /** Makes every level in the index, and every parking, true for this instant. */
  #catchUp(nowMs: number): void {
    for (let due = this.#parked.peek(); due !== undefined && due.atMs <= nowMs;) {
      this.reopen(due.lane, nowMs);
      due = this.#parked.peek();
    }
    for (let due = this.#promotions.peek(); due !== undefined && due.atMs <= nowMs;) {
      this.settle(due.lane, nowMs);
      due = this.#promotions.peek();
    }
  }

  #enterIndex(lane: L, nowMs: number): void {
    const { turn, promotion } = lane;
    turn.level = lane.levelAt(nowMs);
    turn.turn = lane.queue.turn;
    place(this.#index, turn);
    promotion.atMs = lane.promotesAt(turn.level);
    if (promotion.atMs < Number.POSITIVE_INFINITY) place(this.#promotions, promotion);
    else displace(this.#promotions, promotion);
  }

  #leaveIndex(lane: L): void {
    displace(this.#index, lane.turn);
    displace(this.#promotions, lane.promotion);
  }

  #park(lane: L, untilMs: number): void {
    this.#leaveIndex(lane);
    lane.parking.atMs = untilMs;
    this.#parked.push(lane.parking);
    lane.queue.parked.add(lane);
  }

  #unpark(lane: L): void {
    if (lane.parking.place < 0) return;
    this.#parked.remove(lane.parking);
    lane.queue.parked.delete(lane);
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
