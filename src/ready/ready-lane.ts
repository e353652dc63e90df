import type { TaskId } from '../domain/ids.js';
import type { Lane } from '../domain/lane.js';
import type { PriorityRank } from '../domain/priority.js';
import { IndexedHeap, type Placed } from './indexed-heap.js';
import type { QueueState } from './queue-state.js';
import type { Alarm, GroupLane, RoutingGroup, Turn } from './routing-group.js';

/** A task that the ready queue holds. */
export interface ReadyEntry extends Placed {
  readonly taskId: TaskId;
  readonly queue: QueueState<ReadyLane>;
  /** Null once taken: from then on it only holds a slot of its queue. */
  waitsIn: ReadyLane | null;
  /** Of its taking; empty while it waits. */
  grant: string;
  /** Postgres granted it: it runs. */
  confirmed: boolean;
  readonly rank: PriorityRank;
  /** In the ready queue's own time: what ageing counts from. */
  readonly eligibleAt: number;
  /** In the time of Postgres: what the order goes by. */
  readonly orderedAt: number;
  readonly seq: number;
}

type Window = IndexedHeap<ReadyEntry>;

/**
 * One window of waiting entries for each submitted priority, oldest first. The head of a window is
 * its oldest and so, whatever the ageing, its most urgent: three heads tell all about a lane.
 */
export class ReadyLane implements GroupLane<ReadyLane> {
  readonly lane: Lane;
  readonly queue: QueueState<ReadyLane>;
  readonly group: RoutingGroup<ReadyLane>;
  readonly turn: Turn<ReadyLane> = { place: -1, lane: this, level: 0, turn: 0 };
  readonly promotion: Alarm<ReadyLane> = { place: -1, lane: this, atMs: 0 };
  readonly parking: Alarm<ReadyLane> = { place: -1, lane: this, atMs: 0 };
  // Made when first needed: most lanes see one priority, and there may be a million lanes.
  readonly #windows: [Window | null, Window | null, Window | null] = [null, null, null];
  #size = 0;

  constructor(lane: Lane, queue: QueueState<ReadyLane>, group: RoutingGroup<ReadyLane>) {
    this.lane = lane;
    this.queue = queue;
    this.group = group;
  }

  get size(): number {
    return this.#size;
  }

  sizeOf(rank: PriorityRank): number {
    return this.#windows[rank]?.size ?? 0;
  }

  push(entry: ReadyEntry): void {
    const window = (this.#windows[entry.rank] ??= new IndexedHeap(isOlder));
    window.push(entry);
    this.#size += 1;
    this.queue.depth[entry.rank] += 1;
  }

  remove(entry: ReadyEntry): void {
    this.#windows[entry.rank]?.remove(entry);
    this.#size -= 1;
    this.queue.depth[entry.rank] -= 1;
    entry.waitsIn = null;
  }

  isHead(entry: ReadyEntry): boolean {
    return entry.place === 0;
  }

  levelAt(nowMs: number): PriorityRank {
    let best: PriorityRank = 2;
    for (const window of this.#windows) {
      const head = window?.peek();
      if (head === undefined) continue;
      const level = levelOf(head, nowMs);
      if (level < best) best = level;
    }
    return best;
  }

  /** When a head becomes more urgent than `level`, which none is yet. */
  promotesAt(level: PriorityRank): number {
    if (level === 0) return Number.POSITIVE_INFINITY;
    const better = level === 2 ? 1 : 0;
    let first = Number.POSITIVE_INFINITY;
    for (const window of this.#windows) {
      const head = window?.peek();
      if (head === undefined) continue;
      first = Math.min(first, head.eligibleAt + this.queue.ageing.ageFor(head.rank, better));
    }
    return first;
  }

  /** Who is taken next: the most urgent head, of equal ones the oldest. */
  head(nowMs: number): ReadyEntry | null {
    let best: ReadyEntry | null = null;
    for (const window of this.#windows) {
      const head = window?.peek();
      if (head !== undefined && (best === null || isTakenBefore(head, best, nowMs))) best = head;
    }
    return best;
  }

  /** How many are taken before this entry of the same queue, counted up to a limit. */
  countBefore(entry: ReadyEntry, nowMs: number, limit: number): number {
    let count = 0;
    for (const window of this.#windows) {
      if (window === null) continue;
      count += window.countFirst((other) => isTakenBefore(other, entry, nowMs), limit - count);
    }
    return count;
  }

  /** How many of a rank have become at least as urgent as `level`: a step for each of them. */
  countAged(rank: PriorityRank, level: PriorityRank, nowMs: number): number {
    const eligibleBy = nowMs - this.queue.ageing.ageFor(rank, level);
    const isAged = (entry: ReadyEntry) => entry.eligibleAt <= eligibleBy;
    return this.#windows[rank]?.countFirst(isAged, Number.POSITIVE_INFINITY) ?? 0;
  }

  oldestEligibleAt(): number {
    let oldest = Number.POSITIVE_INFINITY;
    for (const window of this.#windows) {
      oldest = Math.min(oldest, window?.peek()?.eligibleAt ?? Number.POSITIVE_INFINITY);
    }
    return oldest;
  }
}

export function levelOf({ queue, rank, eligibleAt }: ReadyEntry, nowMs: number): PriorityRank {
  return queue.ageing.levelOf(rank, nowMs - eligibleAt);
}

/** The order inside a queue. */
function isTakenBefore(a: ReadyEntry, b: ReadyEntry, nowMs: number): boolean {
  const levelA = levelOf(a, nowMs);
  const levelB = levelOf(b, nowMs);
  return levelA === levelB ? isOlder(a, b) : levelA < levelB;
}

export function isOlder(a: ReadyEntry, b: ReadyEntry): boolean {
  return a.orderedAt === b.orderedAt ? a.seq < b.seq : a.orderedAt < b.orderedAt;
}
