import type { PriorityRank } from '../../domain/priority.js';
import { IndexedHeap, type Placed } from '../indexed-heap.js';
import { isOlder, isTakenBefore } from './queue-order.js';
import {
  levelOf,
  type MergedLane,
  type Queue,
  type ReadyEntry,
  type ReadyLane,
  type TakeLane,
} from './ready-lane.js';
import type { Alarm, RoutingGroup } from './routing-group.js';

/** The oldest entry of a lane and a priority, among those of the other lanes. */
class Member implements Placed {
  place = -1;
  readonly lane: ReadyLane;
  head: ReadyEntry;

  constructor(lane: ReadyLane, head: ReadyEntry) {
    this.lane = lane;
    this.head = head;
  }
}

/** Of one priority. */
class Heads {
  readonly #heap = new IndexedHeap<Member>((a, b) => isOlder(a.head, b.head));
  readonly #members = new Map<ReadyLane, Member>();

  get first(): ReadyEntry | null {
    return this.#heap.peek()?.head ?? null;
  }

  note(lane: ReadyLane, head: ReadyEntry | null): void {
    const member = this.#members.get(lane);
    if (head === null) {
      if (member === undefined) return;
      this.#heap.remove(member);
      this.#members.delete(lane);
    } else if (member === undefined) {
      const added = new Member(lane, head);
      this.#members.set(lane, added);
      this.#heap.push(added);
    } else {
      member.head = head;
      this.#heap.update(member);
    }
  }
}

const ranks: readonly PriorityRank[] = [0, 1, 2];

/**
 * All lanes of one queue and one capability set, as a worker for every type sees them: its windows are
 * those of its members, merged. So a queue costs such a worker the same whatever its number of types.
 */
export class WildcardLane implements MergedLane {
  readonly queue: Queue;
  group: RoutingGroup<TakeLane>;
  place = -1;
  level: PriorityRank = 0;
  turn = 0;
  readonly promotion: Alarm<TakeLane> = { place: -1, lane: this, atMs: 0 };
  parking: Alarm<TakeLane> | null = null;
  /** Lanes that exist, with or without entries. */
  laneCount = 0;
  readonly #heads: [Heads, Heads, Heads] = [new Heads(), new Heads(), new Heads()];

  constructor(queue: Queue, group: RoutingGroup<TakeLane>) {
    this.queue = queue;
    this.group = group;
  }

  /** Whether it holds something. */
  get size(): number {
    return this.#heads.some(({ first }) => first !== null) ? 1 : 0;
  }

  noteHead(lane: ReadyLane, rank: PriorityRank): void {
    this.#heads[rank].note(lane, lane.headOf(rank));
  }

  noteHeads(lane: ReadyLane): void {
    for (const rank of ranks) this.noteHead(lane, rank);
  }

  levelAt(nowMs: number): PriorityRank {
    let best: PriorityRank = 2;
    for (const { first } of this.#heads) {
      if (first === null) continue;
      const level = levelOf(first, nowMs);
      if (level < best) best = level;
    }
    return best;
  }

  promotesAt(nowMs: number): number {
    let soonest = Number.POSITIVE_INFINITY;
    for (const { first } of this.#heads) {
      const level = first === null ? 0 : levelOf(first, nowMs);
      if (first === null || level === 0) continue;
      const age = this.queue.ageing.ageFor(first.rank, level === 2 ? 1 : 0);
      soonest = Math.min(soonest, first.eligibleAt + age);
    }
    return soonest;
  }

  opensAt(nowMs: number): number {
    const head = this.head(nowMs);
    return head === null ? Number.POSITIVE_INFINITY : this.queue.opensAtFor(head, nowMs);
  }

  head(nowMs: number): ReadyEntry | null {
    let best: ReadyEntry | null = null;
    for (const { first } of this.#heads) {
      if (first === null) continue;
      if (best === null || isTakenBefore(this.queue.ageing, first, best, nowMs)) best = first;
    }
    return best;
  }
}
