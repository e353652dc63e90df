import type { LineSegment } from '../domain/line-segments.js';
import { isBefore, lineStart } from '../ready/left-line.js';
import type { Left, Position, Window } from '../ready/ready-queue.js';
import type { Queryable } from '../store/database.js';
import {
  measureStretches,
  type MeasuredStretch,
  type WantedStretch,
} from '../store/line-stretches.js';
import { eachInTurns } from '../runtime/turns.js';
import { WindowMap } from './windows.js';

interface LeftCountsOptions {
  /** Tasks. */
  readonly segmentSize: number;
  /** Of a stretch, in one statement. */
  readonly segmentsAtOnce: number;
  /** Index entries that a round reads, about: 100 ms. */
  readonly tasksInRound: number;
}

const defaults: LeftCountsOptions = {
  segmentSize: 1_000,
  segmentsAtOnce: 20,
  tasksInRound: 100_000,
};
const maxStretchesAtOnce = 100;

interface Segment extends Position {
  readonly toMs: number;
  readonly count: number;
}

/** What of a window's line is in Postgres alone, in segments. */
interface LeftCount {
  segments: readonly Segment[];
  /** False: there is more behind the last segment. */
  isWhole: boolean;
  round: number;
  /** The next of the segments in the middle to be counted again. */
  recount: number;
}

interface Measurement {
  readonly stretch: WantedStretch;
  readonly note: (measured: MeasuredStretch, segmentSize: number) => void;
}

export interface BehindWindow {
  readonly window: Window;
  /** Where its line begins; null: nobody looked, and it is not counted anew. */
  readonly from: Left['from'] | null;
}

/**
 * How many tasks of windows that are behind are in Postgres alone. A line changes at its ends: the feeder takes
 * from its head, and submits join its tail. So it is kept in segments of 1,000 tasks, and a round counts the first
 * and the last one anew, and one in between, which finds out about tasks that were cancelled or expired there.
 * A line that was never counted takes a round for each 100,000 tasks.
 */
export class LeftCounts {
  readonly #db: Queryable;
  readonly #options: LeftCountsOptions;
  #known = new WindowMap<LeftCount>();
  #rounds = 0;

  constructor(db: Queryable, options = defaults) {
    this.#db = db;
    this.#options = options;
  }

  segmentsOf(window: Window): readonly LineSegment[] {
    const { segments } = this.#known.get(window) ?? { segments: [] };
    return segments
      .filter(({ count }) => count > 0)
      .map(({ eligibleAtMs, toMs, count }) => ({ fromMs: eligibleAtMs, toMs, count }));
  }

  /** In this order they are counted anew. */
  async longestUnseenFirst(windows: readonly Window[]): Promise<readonly Window[]> {
    const seen: { readonly window: Window; readonly round: number }[] = [];
    await eachInTurns(windows, (window) => {
      seen.push({ window, round: this.#known.get(window)?.round ?? 0 });
    });
    return seen.sort((a, b) => a.round - b.round).map(({ window }) => window);
  }

  /** False: some line was never counted to its end. */
  async refresh(behind: readonly BehindWindow[]): Promise<boolean> {
    this.#rounds += 1;
    await this.#keep(behind);
    const { segmentSize, segmentsAtOnce, tasksInRound } = this.#options;
    let tasks = 0;
    const looked: { readonly window: Window; readonly known: LeftCount }[] = [];
    const measurements: Measurement[] = [];
    for (const { window, from } of behind) {
      if (tasks >= tasksInRound) break;
      if (from === null) continue;
      const known = this.#countOf(window);
      known.round = this.#rounds;
      looked.push({ window, known });
      tasks += this.#costOf(known);
      measurements.push(...measurementsOf(window, from, known));
    }
    await this.#measure(measurements);
    for (let cut = looked.filter(isCut); cut.length > 0; cut = cut.filter(isCut)) {
      tasks += cut.length * segmentSize * segmentsAtOnce;
      if (tasks > tasksInRound) break;
      await this.#measure(cut.map(({ window, known }) => tailOf(window, known)));
    }
    let isWhole = true;
    await eachInTurns(behind, ({ window }) => {
      isWhole &&= this.#known.get(window)?.isWhole === true;
    });
    return isWhole;
  }

  /** Lines that are no longer left are forgotten. */
  async #keep(behind: readonly BehindWindow[]): Promise<void> {
    const kept = new WindowMap<LeftCount>();
    await eachInTurns(behind, ({ window }) => {
      const known = this.#known.get(window);
      if (known !== undefined) kept.set(window, known);
    });
    this.#known = kept;
  }

  #countOf(window: Window): LeftCount {
    const known = this.#known.get(window) ?? { segments: [], isWhole: false, round: 0, recount: 0 };
    this.#known.set(window, known);
    return known;
  }

  #costOf({ segments, isWhole }: LeftCount): number {
    const { segmentSize } = this.#options;
    // Most are short. What is not is gone on with while there is room.
    if (!isWhole) return segmentSize;
    // One in between is counted again, too.
    const ends = (segments[0]?.count ?? 0) + (segments.at(-1)?.count ?? 0);
    return segments.length > 2 ? ends + segmentSize : ends + 1;
  }

  async #measure(measurements: readonly Measurement[]): Promise<void> {
    for (let from = 0; from < measurements.length; from += maxStretchesAtOnce) {
      const some = measurements.slice(from, from + maxStretchesAtOnce);
      const stretches = some.map(({ stretch }) => stretch);
      const { segmentsAtOnce: marks, segmentSize: markEvery } = this.#options;
      const measured = await measureStretches(this.#db, stretches, { marks, markEvery });
      for (const [index, { note }] of some.entries()) {
        const one = measured[index];
        if (one !== undefined) note(one, markEvery);
      }
    }
  }
}

function isCut({ known }: { readonly known: LeftCount }): boolean {
  return !known.isWhole;
}

/** The head up to the next segment, one in between, and the tail to the end. */
function measurementsOf(window: Window, from: Position, known: LeftCount): Measurement[] {
  // Segments that were fed are gone. The head is what is left before the others, wherever it begins by now.
  const rest = known.segments.slice(1).filter((segment) => isBefore(from, segment));
  const [next] = rest;
  known.segments = [{ ...from, toMs: next?.eligibleAtMs ?? from.eligibleAtMs, count: 0 }, ...rest];
  if (next === undefined) return [tailOf(window, known)];
  const middle = 1 + (known.recount % Math.max(1, rest.length - 1));
  known.recount += 1;
  const bounded = middle < rest.length ? [0, middle] : [0];
  return [...bounded.map((nth) => segmentAt(window, known, nth)), tailOf(window, known)];
}

function segmentAt(window: Window, known: LeftCount, nth: number): Measurement {
  const [from = lineStart, to = null] = known.segments.slice(nth, nth + 2);
  return {
    stretch: { window, from, to },
    note: (measured) => {
      replaceOne(known, nth, measured);
    },
  };
}

/** The last segment, and all that has come behind it. */
function tailOf(window: Window, known: LeftCount): Measurement {
  const from = known.segments.at(-1) ?? lineStart;
  const nth = Math.max(0, known.segments.length - 1);
  return {
    stretch: { window, from, to: null },
    note: (measured, segmentSize) => {
      replaceFrom(known, nth, measured, segmentSize);
    },
  };
}

function replaceOne(known: LeftCount, nth: number, measured: MeasuredStretch): void {
  const { count, marks, lastEligibleAtMs, isCut } = measured;
  if (isCut) {
    // Many tasks came in before it. It is counted from the beginning.
    known.segments = [];
    known.isWhole = false;
  }
  known.segments = known.segments.map((segment, index) =>
    index === nth
      ? { ...segment, ...marks[0], count, toMs: lastEligibleAtMs ?? segment.toMs }
      : segment,
  );
}

/** What was counted takes the place of the segment and of all that follow it. */
function replaceFrom(
  known: LeftCount,
  nth: number,
  measured: MeasuredStretch,
  segmentSize: number,
): void {
  const { count, marks, lastEligibleAtMs, isCut } = measured;
  const found = marks.map((mark, index) => {
    const toMs = marks[index + 1]?.eligibleAtMs ?? lastEligibleAtMs ?? mark.eligibleAtMs;
    const counted = Math.min(segmentSize, count - index * segmentSize);
    return { ...mark, toMs, count: counted };
  });
  // Fewer than there were: it has to be counted from the beginning.
  if (known.segments.length < nth) return;
  known.segments = [...known.segments.slice(0, nth), ...found];
  known.isWhole = !isCut;
}
