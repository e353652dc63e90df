import type { TaskId } from '../domain/ids.js';
import type { Lane } from '../domain/lane.js';
import type { PriorityRank } from '../domain/priority.js';
import type { Cost } from '../domain/queue-settings.js';
import { IndexedHeap, type Placed } from './indexed-heap.js';
import type { LeftLine } from './left-line.js';
import { isOlder, isTakenBefore, type Ordered } from './queue-order.js';
import type { QueueState } from './queue-state.js';
import type { Alarm, GroupLane, RoutingGroup } from './routing-group.js';
import type { TakeLane, WildcardLane } from './wildcard-lane.js';

/** A task that waits. Once taken, it is an `OutEntry`. */
export interface ReadyEntry extends Placed, Ordered {
  readonly taskId: TaskId;
  readonly lane: ReadyLane;
  readonly cost: Cost;
  /** The how-manyth it was that came into its window; written by the window alone. */
  nth: number;
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
}

/**
 * One window of waiting entries for each submitted priority, oldest first. The head of a window is
 * its oldest and so, whatever the ageing, its most urgent: three heads tell all about a lane.
 */
export class ReadyLane implements GroupLane<TakeLane> {
  readonly lane: Lane;
  readonly queue: Queue;
  /** Another one when its queue comes to share other limits. */
  group: RoutingGroup<TakeLane>;
  /** Null until a worker asks for every type. */
  wildcard: WildcardLane | null = null;
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

  /** How many of a rank have become at least as urgent as `level`: a step for each of them. */
  countAged(rank: PriorityRank, level: PriorityRank, nowMs: number): number {
    const eligibleBy = nowMs - this.queue.ageing.ageFor(rank, level);
    const isAged = (entry: ReadyEntry) => entry.eligibleAt <= eligibleBy;
    return findWindow(this.#windows, rank)?.countFirst(isAged, Number.POSITIVE_INFINITY) ?? 0;
  }

  oldestEligibleAt(): number {
    let oldest = Number.POSITIVE_INFINITY;
    for (let window = this.#windows; window !== null; window = window.next) {
      oldest = Math.min(oldest, window.peek()?.eligibleAt ?? Number.POSITIVE_INFINITY);
    }
    return oldest;
  }

  /** No private method of the language: with one, every lane takes 8 bytes more. */
  private windowOf(rank: PriorityRank): Window {
    return findWindow(this.#windows, rank) ?? (this.#windows = new Window(rank, this.#windows));
  }
}

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
