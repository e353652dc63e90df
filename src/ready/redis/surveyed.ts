import { priorities, priorityOf, type Priority } from '../../domain/priority.js';
import type { HeldBackBy, SurveyedQueue, Waiting } from '../ready-queue.js';
import { listOf, textsOf } from './replies.js';
import type { Reply } from './script-runner.js';

/** What the script `counts` tells of a queue. */
export interface CountedQueue {
  readonly queue: string;
  /** Another one after each take. */
  readonly turn: string;
  readonly running: number;
  readonly depth: Readonly<Record<Priority, number>>;
}

export function countedOf(reply: Reply | undefined): CountedQueue[] {
  const told = textsOf(reply);
  const counted: CountedQueue[] = [];
  for (let from = 0; from < told.length; from += 6) {
    const [queue = '', turn = '', running, high, medium, low] = told.slice(from, from + 6);
    const depth = { high: Number(high), medium: Number(medium), low: Number(low) };
    counted.push({ queue, turn, running: Number(running), depth });
  }
  return counted;
}

/** What the script `survey` tells of a queue. */
export interface Look {
  readonly queue: string;
  readonly heldBackBy: HeldBackBy | null;
  readonly waiting: SurveyedQueue['waiting'];
  readonly ages: readonly {
    readonly priority: Priority;
    readonly ageMs: number;
    readonly count: number;
  }[];
}

export function lookOf(reply: Reply): Look {
  const told = listOf(reply);
  const [queue, heldBackBy] = told;
  const waitingAt = (rank: number): Waiting => {
    const [count, oldestAgeMs] = told.slice(2 + 2 * rank, 4 + 2 * rank);
    return { count: Number(count), oldestAgeMs: oldestAgeMs === '' ? null : Number(oldestAgeMs) };
  };
  const samples = textsOf(told[8]);
  const ages = Array.from({ length: samples.length / 3 }, (_, nth) => {
    const [level = 0, ageMs = 0, count = 0] = samples.slice(3 * nth, 3 * nth + 3).map(Number);
    return { priority: priorityOf(level), ageMs, count };
  });
  return {
    queue: String(queue),
    heldBackBy: heldBackBy === '' ? null : (heldBackBy as HeldBackBy),
    waiting: { high: waitingAt(0), medium: waitingAt(1), low: waitingAt(2) },
    ages,
  };
}

/**
 * An earlier look at a queue, as it would be now: it is older, and of what was counted then the most urgent may have
 * been taken, or others have come. What came since is as urgent as it was submitted.
 */
export function broughtUp(
  look: Look,
  depth: Readonly<Record<Priority, number>>,
  byMs: number,
): Look {
  const total = (counts: Readonly<Record<Priority, number>>) =>
    priorities.reduce((sum, one) => sum + counts[one], 0);
  const before = total(countsOf(look.waiting));
  let gone = Math.max(0, before - total(depth));
  let come = Math.max(0, total(depth) - before);
  const waiting = { ...look.waiting };
  for (const one of priorities) {
    const { count, oldestAgeMs } = look.waiting[one];
    const less = Math.min(gone, count);
    gone -= less;
    const more = Math.min(come, Math.max(0, depth[one] - count));
    come -= more;
    const left = count - less + more;
    waiting[one] = {
      count: left,
      oldestAgeMs: oldestAgeMs === null || left === 0 ? null : oldestAgeMs + byMs,
    };
  }
  const { low } = waiting;
  waiting.low = { ...low, count: low.count + come };
  const ages = look.ages.map((age) => ({ ...age, ageMs: age.ageMs + byMs }));
  return { ...look, waiting, ages };
}

function countsOf(waiting: SurveyedQueue['waiting']): Record<Priority, number> {
  const { high, medium, low } = waiting;
  return { high: high.count, medium: medium.count, low: low.count };
}
