import type { PriorityRank } from '../../domain/priority.js';
import { IndexedHeap, type Placed } from '../indexed-heap.js';
import { isOlder } from './queue-order.js';
import { levelOf, type Queue, type ReadyEntry, type TakeLane } from './ready-lane.js';

/** What lanes are taken from: a whole routing group, or one lane of a queue that was named. */
export interface LaneSource {
  /** The lane whose turn it is, of those that are not parked. */
  first(): TakeLane | null;
  park(lane: TakeLane, untilMs: number): void;
  /** When the first parked lane opens; infinity: not before something happens. */
  opensAt(nowMs: number): number;
}

/** The entry that a source would give, and what it was ordered by when last looked at. */
interface Candidate extends Placed {
  readonly source: LaneSource;
  /** The first one of its source: its own, or that of all types which it is of. */
  lane: TakeLane;
  entry: ReadyEntry;
  level: PriorityRank;
  turn: number;
}

/**
 * What one request may take, best first. Comparing the first lane of each group is exact: a queue
 * has one lane in a group, so the queue whose turn it is stands first wherever it is that urgent.
 * Taking makes candidates worse, never better: one whose order went stale is noticed at the top.
 * Whether an entry may go is asked only when nothing comes before it, because asking leaves traces:
 * an entry without its tokens holds up what comes after it.
 */
export class Walk {
  /** By queues in which another entry was found short: the lanes that were parked by then. */
  readonly foundShort = new Map<Queue, readonly TakeLane[]>();
  /** Queues in which an entry waits because another one is short. */
  readonly obstructed = new Set<Queue>();
  readonly #sources: readonly LaneSource[];
  readonly #nowMs: number;
  readonly #line = new IndexedHeap<Candidate>(comesBefore);
  /** By the set of limits: the first entry that waits for them. Nothing behind it is looked at. */
  readonly #waiting = new Map<string, ReadyEntry>();

  constructor(sources: readonly LaneSource[], nowMs: number) {
    this.#sources = sources;
    this.#nowMs = nowMs;
    for (const source of sources) {
      const lane = source.first();
      const entry = lane?.head(nowMs) ?? null;
      if (lane === null || entry === null) continue;
      const level = levelOf(entry, nowMs);
      this.#line.push({ place: -1, source, lane, entry, level, turn: lane.queue.turn });
    }
  }

  next(): ReadyEntry | null {
    while (true) {
      const candidate = this.#line.peek();
      if (candidate === undefined) return null;
      const { entry } = candidate;
      if (this.#isStale(candidate)) continue;
      if (this.#waiting.has(entry.lane.queue.sharedKey)) this.#line.remove(candidate);
      else if (this.#isOpen(candidate)) return entry;
    }
  }

  /** To be asked when there is no next. */
  opensAt(): number {
    let first = Number.POSITIVE_INFINITY;
    for (const source of this.#sources) first = Math.min(first, source.opensAt(this.#nowMs));
    for (const entry of this.#waiting.values()) {
      first = Math.min(first, entry.lane.queue.sharedOpensAt(entry, this.#nowMs));
    }
    return first;
  }

  /** True: something else is its source's first by now, and it has found its new place. */
  #isStale(candidate: Candidate): boolean {
    const lane = candidate.source.first();
    const entry = lane?.head(this.#nowMs) ?? null;
    if (lane === null || entry === null) {
      this.#line.remove(candidate);
      return true;
    }
    const { turn } = lane.queue;
    if (entry === candidate.entry && turn === candidate.turn) return false;
    candidate.lane = lane;
    candidate.entry = entry;
    candidate.level = levelOf(entry, this.#nowMs);
    candidate.turn = turn;
    this.#line.update(candidate);
    return true;
  }

  #isOpen({ source, lane, entry }: Candidate): boolean {
    const { queue } = lane;
    const nowMs = this.#nowMs;
    if (queue.noteIfShort(entry, nowMs)) this.foundShort.set(queue, [...queue.parked]);
    const opensAt = queue.opensAtFor(entry, nowMs);
    if (opensAt > nowMs) {
      if (queue.obstacleTo(entry, nowMs) !== null) this.obstructed.add(queue);
      source.park(lane, opensAt);
      return false;
    }
    if (queue.sharedOpensAt(entry, nowMs) <= nowMs) return true;
    this.#waiting.set(queue.sharedKey, entry);
    return false;
  }
}

/** Parked for one request only: its place in the index of its group is others' matter. */
export class NamedLane implements LaneSource {
  readonly #lane: TakeLane;
  #isParked = false;

  constructor(lane: TakeLane) {
    this.#lane = lane;
  }

  first(): TakeLane | null {
    return this.#isParked || this.#lane.size === 0 ? null : this.#lane;
  }

  park(): void {
    this.#isParked = true;
  }

  opensAt(nowMs: number): number {
    return this.#isParked ? this.#lane.opensAt(nowMs) : Number.POSITIVE_INFINITY;
  }
}

function comesBefore(a: Candidate, b: Candidate): boolean {
  if (a.level !== b.level) return a.level < b.level;
  // No two queues have the same turn.
  return a.turn === b.turn ? isOlder(a.entry, b.entry) : a.turn < b.turn;
}
