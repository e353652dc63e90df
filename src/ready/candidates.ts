import type { PriorityRank } from '../domain/priority.js';
import { IndexedHeap, type Placed } from './indexed-heap.js';
import { isOlder, levelOf, type ReadyEntry, type ReadyLane } from './ready-lane.js';

/** What lanes are taken from: a whole routing group, or one lane of a queue that was named. */
export interface LaneSource {
  /** The lane whose turn it is, if it may be taken from now. */
  first(nowMs: number): ReadyLane | null;
  /** When a lane opens; infinity: not before something happens. To be asked without a first. */
  opensAt(nowMs: number): number;
}

/** The entry that a source would give, and what it was ordered by when last looked at. */
interface Candidate extends Placed {
  readonly source: LaneSource;
  entry: ReadyEntry;
  level: PriorityRank;
  turn: number;
}

/**
 * What one request may take, best first. Comparing the first lane of each group is exact: a queue
 * has one lane in a group, so the queue whose turn it is stands first wherever it is that urgent.
 * Taking makes candidates worse, never better: one whose order went stale is noticed at the top.
 */
export class Candidates {
  readonly #sources: readonly LaneSource[];
  readonly #nowMs: number;
  readonly #line = new IndexedHeap<Candidate>(comesBefore);

  constructor(sources: readonly LaneSource[], nowMs: number) {
    this.#sources = sources;
    this.#nowMs = nowMs;
    for (const source of sources) {
      const entry = this.#entryOf(source);
      if (entry === null) continue;
      const level = levelOf(entry, nowMs);
      this.#line.push({ place: -1, source, entry, level, turn: entry.queue.turn });
    }
  }

  next(): ReadyEntry | null {
    while (true) {
      const candidate = this.#line.peek();
      if (candidate === undefined) return null;
      const entry = this.#entryOf(candidate.source);
      if (entry === null) {
        this.#line.remove(candidate);
        continue;
      }
      const { turn } = entry.queue;
      if (entry === candidate.entry && turn === candidate.turn) return entry;
      candidate.entry = entry;
      candidate.level = levelOf(entry, this.#nowMs);
      candidate.turn = turn;
      this.#line.update(candidate);
    }
  }

  /** To be asked when there is no next. */
  opensAt(): number {
    let first = Number.POSITIVE_INFINITY;
    for (const source of this.#sources) first = Math.min(first, source.opensAt(this.#nowMs));
    return first;
  }

  #entryOf(source: LaneSource): ReadyEntry | null {
    return source.first(this.#nowMs)?.head(this.#nowMs) ?? null;
  }
}

export class NamedLane implements LaneSource {
  readonly #lane: ReadyLane;

  constructor(lane: ReadyLane) {
    this.#lane = lane;
  }

  first(nowMs: number): ReadyLane | null {
    return this.opensAt(nowMs) <= nowMs ? this.#lane : null;
  }

  opensAt(nowMs: number): number {
    const { size, queue } = this.#lane;
    return size === 0 ? Number.POSITIVE_INFINITY : queue.opensAt(nowMs);
  }
}

function comesBefore(a: Candidate, b: Candidate): boolean {
  if (a.level !== b.level) return a.level < b.level;
  // No two queues have the same turn.
  return a.turn === b.turn ? isOlder(a.entry, b.entry) : a.turn < b.turn;
}
