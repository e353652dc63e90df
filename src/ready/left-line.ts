import type { Left, Position, Window } from './ready-queue.js';

/** Before everything that was ever in line. */
export const lineStart: Position = { eligibleAtMs: Number.NEGATIVE_INFINITY, seq: 0 };

export function isBefore(a: Position, b: Position): boolean {
  return a.eligibleAtMs === b.eligibleAtMs ? a.seq < b.seq : a.eligibleAtMs < b.eligibleAtMs;
}

/** Without all else that an offer has. */
function copyOf({ eligibleAtMs, seq }: Position): Position {
  return { eligibleAtMs, seq };
}

/**
 * What of a window's line is in Postgres alone: all of it from a position on. A row that is left
 * while a stretch is read may be missing from that stretch, wherever it stands: the line is never
 * taken to begin after one that was left since the feed began.
 */
export class LeftLine implements Left {
  readonly window: Window;
  from: Position;
  round: number;
  #leftSince: Position | null = null;

  constructor(window: Window, from: Position, round: number) {
    this.window = window;
    this.from = copyOf(from);
    this.round = round;
  }

  leave(position: Position): void {
    if (isBefore(position, this.from)) this.from = copyOf(position);
    if (this.#leftSince === null || isBefore(position, this.#leftSince)) {
      this.#leftSince = copyOf(position);
    }
  }

  beginFeed(round: number): void {
    this.#leftSince = null;
    this.round = round;
  }

  /** False: there is nothing left. */
  feed(next: Position | null, round: number): boolean {
    const left = this.#leftSince;
    const from = left === null || (next !== null && isBefore(next, left)) ? next : left;
    this.beginFeed(round);
    if (from === null) return false;
    this.from = from;
    return true;
  }
}
