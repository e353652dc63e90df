import { overlapOf } from '../shared/measure.js';
import {
  finding,
  type Attempt,
  type ChaosHistory,
  type FaultSpan,
  type Finding,
  type RateBound,
  type SlotBound,
} from './history.js';

/**
 * A limit is exact at the grant, which nobody sees; the claim comes later. On a busy machine by up
 * to so much, and by as long as a server or Redis stood still in between.
 */
const deliveryMs = 1_000;

/** The most that was seen of a queue, and how much it may be. */
export interface Peak {
  readonly what: 'in a window' | 'at once';
  readonly queue: string;
  readonly seen: number;
  readonly allowed: number;
}

export function findPeaks(history: ChaosHistory): readonly Peak[] {
  return [
    ...history.limits.map((bound) => findRatePeak(history, bound)),
    ...history.slots.map((bound) => findSlotPeak(history, bound)),
  ];
}

export function checkLimits(peaks: readonly Peak[]): Finding[] {
  return peaks
    .filter(({ seen, allowed }) => seen > allowed)
    .map(({ what, queue, seen, allowed }) =>
      finding(
        what === 'at once' ? 'too many at once' : 'over the limit',
        `${queue}: ${seen} ${what}, ${allowed} allowed`,
      ),
    );
}

/**
 * By the times of the database. A claim that was committed while its connection broke has reached
 * nobody: its slot and its tokens are given to others, and it goes back without having run.
 */
function attemptsOf({ rows, begins }: ChaosHistory, queue: string): readonly Attempt[] {
  const begun = new Set(begins.map(({ taskId, attempt }) => `${taskId} ${attempt}`));
  return rows
    .filter((row) => row.queue === queue)
    .flatMap(({ taskId, attempts }) =>
      attempts.filter(({ attempt }) => begun.has(`${taskId} ${attempt}`)),
    );
}

function findRatePeak(history: ChaosHistory, { queue, most, windowMs }: RateBound): Peak {
  const stalls = history.faults.filter(({ kind }) => kind.startsWith('freeze'));
  const grants = attemptsOf(history, queue)
    .filter(({ from }) => from < history.limitsUntil)
    .map(({ from }) => grantSpan(from, stalls));
  const seen = mostCertainlyWithin(grants, windowMs);
  return { what: 'in a window', queue, seen, allowed: most };
}

function findSlotPeak(history: ChaosHistory, { queue, most }: SlotBound): Peak {
  const stretches = attemptsOf(history, queue).map(({ from, to }) => ({
    from,
    to: to ?? Infinity,
  }));
  const seen = overlapOf(stretches, most, Infinity).most;
  return { what: 'at once', queue, seen, allowed: most };
}

interface GrantSpan {
  readonly soonest: number;
  readonly latest: number;
}

/** Between which times it was granted, when it was claimed then. */
function grantSpan(claimedAt: number, stalls: readonly FaultSpan[]): GrantSpan {
  let soonest = claimedAt - deliveryMs;
  for (;;) {
    const begins = stalls
      .filter(({ from, to }) => from < soonest && to >= soonest && from < claimedAt)
      .map(({ from }) => from);
    if (begins.length === 0) return { soonest, latest: claimedAt };
    soonest = Math.min(...begins);
  }
}

/** The most grants that lie within one half-open window, whenever in their spans they were made. */
function mostCertainlyWithin(grants: readonly GrantSpan[], windowMs: number): number {
  const byClaim = grants.toSorted((a, b) => a.latest - b.latest);
  const counts = grants.map(({ soonest }) => {
    const first = byClaim.findIndex(({ latest }) => latest >= soonest);
    let count = 0;
    for (let index = first; index < byClaim.length; index += 1) {
      const grant = byClaim[index];
      if (grant === undefined || grant.latest >= soonest + windowMs) break;
      if (grant.soonest >= soonest) count += 1;
    }
    return count;
  });
  return counts.reduce((most, count) => Math.max(most, count), 0);
}
