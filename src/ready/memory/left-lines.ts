import { priorityOf, type PriorityRank } from '../../domain/priority.js';
import type { LaneDirectory } from './lane-directory.js';
import { LeftLine } from '../left-line.js';
import type { ReadyLane } from './ready-lane.js';
import type { Position, Window } from '../ready-queue.js';

/** The windows that are behind. A lane that has one of them is not forgotten while it is empty. */
export class LeftLines {
  readonly #directory: LaneDirectory;
  readonly #lines = new Set<LeftLine>();
  #rounds = 0;

  constructor(directory: LaneDirectory) {
    this.#directory = directory;
  }

  windows(): Window[] {
    return Array.from(this.#lines, ({ window }) => window);
  }

  leave(lane: ReadyLane, rank: PriorityRank, position: Position): void {
    const known = lane.leftOf(rank);
    if (known !== null) {
      known.leave(position);
      return;
    }
    const window = { lane: lane.lane, priority: priorityOf(rank) };
    const line = new LeftLine(window, position, this.#nextRound());
    this.#lines.add(line);
    lane.setLeft(rank, line);
    this.#note(lane, 1);
  }

  beginFeed(line: LeftLine): void {
    line.beginFeed(this.#nextRound());
  }

  /** Up to `next` all of it was offered; null: up to its end. */
  feed(lane: ReadyLane, rank: PriorityRank, line: LeftLine, next: Position | null): void {
    if (line.feed(next, this.#nextRound())) return;
    this.#lines.delete(line);
    lane.setLeft(rank, null);
    this.#note(lane, -1);
  }

  clear(): void {
    this.#lines.clear();
  }

  /** Never the same twice: a feed that came too late must not be taken for a later one. */
  #nextRound(): number {
    this.#rounds += 1;
    return this.#rounds;
  }

  #note(lane: ReadyLane, more: 1 | -1): void {
    lane.queue.behind += more;
    this.#directory.noteLane(lane);
    this.#directory.noteQueue(lane.queue);
  }
}
