import type { TaskId } from '../../domain/ids.js';
import type { Lane } from '../../domain/lane.js';
import type { PriorityRank } from '../../domain/priority.js';
import type { Cost } from '../../domain/queue-settings.js';
import { IndexedHeap, type Placed, type Split } from '../indexed-heap.js';
import type { LeftLine } from '../left-line.js';
import { isOlder, isTakenBefore, type Ordered } from './queue-order.js';
import type { QueueState } from './queue-state.js';
import type { Alarm, GroupLane, RoutingGroup } from './routing-group.js';

/** A task that waits. Once taken, it is an `OutEntry`. */
export interface ReadyEntry extends Placed, Ordered {
  readonly taskId: TaskId;
  readonly lane: ReadyLane;
  readonly cost: Cost;
  /** The how-manyth it was that came into its window; written by the window alone. */
  nth: number;
}

/** What a take goes by: a lane, or all lanes of a queue that need the same capabilities. */
export interface TakeLane extends GroupLane<TakeLane> {
  readonly queue: Queue;
  /** Another one when its queue comes to share other limits. */
  group: RoutingGroup<TakeLane>;
  head(nowMs: number): ReadyEntry | null;
}

/** A merge of lanes. It has to be told when the oldest entry of a window of one of them is another one. */
export interface MergedLane extends TakeLane {
  laneCount: number;
  noteHead(lane: ReadyLane, rank: PriorityRank): void;
}

export type Queue = QueueState<ReadyLane, ReadyEntry, TakeLane>;

/**
 * Entries of one priority, oldest first. Almost always each comes after all that are there, and the
 * first one leaves first: then how many are before one is known without counting them.
 */
class Window extends IndexedHeap<ReadyEntry> {
  readonly rank: PriorityRank;
  /** The window of another priority of the same lane. */
  readonly next: Window | null;
  /** Null: all of its line is or was in it. */
  left: LeftLine | null = null;
  /** The last one that came. Null: there is none, or they did not come in order. */
  #latest: ReadyEntry | null = null;
  #came = 0;

  constructor(rank: PriorityRank, next: Window | null) {
    super(isOlder);
    this.rank = rank;
    this.next = next;
  }

  override push(entry: ReadyEntry): void {
    const isLatest = this.size === 0 || (this.#latest !== null && isNext(this.#latest, entry));
    this.#latest = isLatest ? entry : null;
    entry.nth = this.#came;
    this.#came += 1;
    super.push(entry);
  }

  override remove(entry: ReadyEntry): void {
    if (entry.place > 0 || this.size === 1) this.#latest = null;
    super.remove(entry);
  }

  override last(): ReadyEntry | undefined {
    return this.#latest ?? super.last();
  }

  /** For one that is in it. */
  countBefore(entry: ReadyEntry, isBefore: (other: ReadyEntry) => boolean, limit: number): number {
    if (this.#latest === null) return this.countFirst(isBefore, limit);
    const left = this.#came - this.size;
    return Math.min(entry.nth - left, limit);
  }

  /** How many were eligible by then, and the first that was not. A step for each, unless it is all of them. */
  splitAt(eligibleBy: number): Split<ReadyEntry> {
    if (this.#latest !== null && this.#latest.eligibleAt <= eligibleBy) {
      return { count: this.size, next: undefined };
    }
    return this.splitFirst((entry) => entry.eligibleAt <= eligibleBy);
  }
}

/**
 * One window of waiting entries for each submitted priority, oldest first. The head of a window is
 * its oldest and so, whatever the ageing, its most urgent: three heads tell all about a lane.
 */
export class ReadyLane implements TakeLane {
  readonly lane: Lane;
  readonly queue: Queue;
  group: RoutingGroup<TakeLane>;
  /** Null until a worker asks for every type. */
  wildcard: MergedLane | null = null;
  place = -1;
  level: PriorityRank = 0;
  turn = 0;
  readonly promotion: Alarm<TakeLane> = { place: -1, lane: this, atMs: 0 };
  parking: Alarm<TakeLane> | null = null;
  idleBefore: ReadyLane | null = null;
  idleAfter: ReadyLane | null = null;
  // Made when first needed: most lanes see one priority, and there may be a million lanes.
  #windows: Window | null = null;

  constructor(lane: Lane, queue: Queue, group: RoutingGroup<TakeLane>) {
    this.lane = lane;
    this.queue = queue;
    this.group = group;
  }

  get size(): number {
    let size = 0;
    for (let window = this.#windows; window !== null; window = window.next) size += window.size;
    return size;
  }

  /** By task type and capability set: see `routingGroupKey`. */
  get route(): string {
    return this.group.route;
  }

  sizeOf(rank: PriorityRank): number {
    return findWindow(this.#windows, rank)?.size ?? 0;
  }

  /** Nothing would be forgotten with it. */
  get isIdle(): boolean {
    for (let window = this.#windows; window !== null; window = window.next) {
      if (window.size > 0 || window.left !== null) return false;
    }
    return true;
  }

  youngest(rank: PriorityRank): ReadyEntry | null {
    return findWindow(this.#windows, rank)?.last() ?? null;
  }

  leftOf(rank: PriorityRank): LeftLine | null {
    return findWindow(this.#windows, rank)?.left ?? null;
  }

  setLeft(rank: PriorityRank, left: LeftLine | null): void {
    this.windowOf(rank).left = left;
  }

  push(entry: ReadyEntry): void {
    this.windowOf(entry.rank).push(entry);
    this.queue.addWaiting(entry.rank, 1);
  }

  remove(entry: ReadyEntry): void {
    findWindow(this.#windows, entry.rank)?.remove(entry);
    this.queue.addWaiting(entry.rank, -1);
  }

  headOf(rank: PriorityRank): ReadyEntry | null {
    return findWindow(this.#windows, rank)?.peek() ?? null;
  }

  isHead(entry: ReadyEntry): boolean {
    return entry.place === 0;
  }

  levelAt(nowMs: number): PriorityRank {
    let best: PriorityRank = 2;
    for (let window = this.#windows; window !== null; window = window.next) {
      const head = window.peek();
      if (head === undefined) continue;
      const level = levelOf(head, nowMs);
      if (level < best) best = level;
    }
    return best;
  }

  /** When the next of its heads becomes more urgent. */
  promotesAt(nowMs: number): number {
    let first = Number.POSITIVE_INFINITY;
    for (let window = this.#windows; window !== null; window = window.next) {
      const head = window.peek();
      if (head === undefined) continue;
      const level = levelOf(head, nowMs);
      if (level === 0) continue;
      const better = level === 2 ? 1 : 0;
      first = Math.min(first, head.eligibleAt + this.queue.ageing.ageFor(head.rank, better));
    }
    return first;
  }

  /** From when on its first entry may be taken, as far as its queue alone decides. */
  opensAt(nowMs: number): number {
    const head = this.head(nowMs);
    return head === null ? Number.POSITIVE_INFINITY : this.queue.opensAtFor(head, nowMs);
  }

  /** Who is taken next: the most urgent head, of equal ones the oldest. */
  head(nowMs: number): ReadyEntry | null {
    const { ageing } = this.queue;
    let best: ReadyEntry | null = null;
    for (let window = this.#windows; window !== null; window = window.next) {
      const head = window.peek();
      if (head === undefined) continue;
      if (best === null || isTakenBefore(ageing, head, best, nowMs)) best = head;
    }
    return best;
  }

  /** How many are taken before this entry of the same queue, counted up to a limit. */
  countBefore(entry: ReadyEntry, nowMs: number, limit: number): number {
    const { ageing } = this.queue;
    const isBefore = (other: ReadyEntry) => isTakenBefore(ageing, other, entry, nowMs);
    let count = 0;
    for (let window = this.#windows; window !== null; window = window.next) {
      const isOwn = entry.lane === this && entry.rank === window.rank;
      const most = limit - count;
      count += isOwn
        ? window.countBefore(entry, isBefore, most)
        : window.countFirst(isBefore, most);
    }
    return count;
  }

  /** Tells of each level how many entries of a rank have it now, and when the oldest of them became eligible. */
  countLevels(
    rank: PriorityRank,
    nowMs: number,
    note: (level: PriorityRank, count: number, oldestEligibleAt: number) => void,
  ): void {
    const window = findWindow(this.#windows, rank);
    let first = window?.peek();
    if (window === null || first === undefined) return;
    let counted = 0;
    for (const level of betterLevels[rank]) {
      const eligibleBy = nowMs - this.queue.ageing.ageFor(rank, level);
      if (first.eligibleAt > eligibleBy) continue;
      const { count, next } = window.splitAt(eligibleBy);
      note(level, count - counted, first.eligibleAt);
      counted = count;
      if (next === undefined) return;
      first = next;
    }
    note(rank, window.size - counted, first.eligibleAt);
  }

  /** At most so many entries of each window. */
  sample(most: number, visit: (entry: ReadyEntry, count: number) => void): void {
    for (let window = this.#windows; window !== null; window = window.next) {
      window.sample(most, visit);
    }
  }

  /** No private method of the language: with one, every lane takes 8 bytes more. */
  private windowOf(rank: PriorityRank): Window {
    return findWindow(this.#windows, rank) ?? (this.#windows = new Window(rank, this.#windows));
  }
}

/** Those that ageing raises a rank to, the most urgent first. */
const betterLevels: Readonly<Record<PriorityRank, readonly PriorityRank[]>> = {
  0: [],
  1: [0],
  2: [0, 1],
};

function findWindow(windows: Window | null, rank: PriorityRank): Window | null {
  let window = windows;
  while (window !== null && window.rank !== rank) window = window.next;
  return window;
}

/** It comes after the other one whatever their ageing. */
function isNext(before: ReadyEntry, entry: ReadyEntry): boolean {
  return isOlder(before, entry) && before.eligibleAt <= entry.eligibleAt;
}

export function levelOf({ lane, rank, eligibleAt }: ReadyEntry, nowMs: number): PriorityRank {
  return lane.queue.ageing.levelOf(rank, nowMs - eligibleAt);
}
