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

export function checkLimits(history: ChaosHistory): Finding[] {
  return [
    ...history.limits.flatMap((bound) => checkRate(history, bound)),
    ...history.slots.flatMap((bound) => checkSlots(history, bound)),
  ];
}

function attemptsOf({ rows }: ChaosHistory, queue: string): readonly Attempt[] {
  return rows.filter((row) => row.queue === queue).flatMap(({ attempts }) => attempts);
}

function checkRate(history: ChaosHistory, bound: RateBound): Finding[] {
  const stalls = history.faults.filter(({ kind }) => kind.startsWith('freeze'));
  const grants = attemptsOf(history, bound.queue).map(({ from }) => grantSpan(from, stalls));
  const most = mostCertainlyWithin(grants, bound.windowMs);
  if (most <= bound.most) return [];
  const detail = `${bound.queue}: ${most} in ${bound.windowMs} ms, ${bound.most} allowed`;
  return [finding('over the limit', detail)];
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

function checkSlots(history: ChaosHistory, bound: SlotBound): Finding[] {
  const stretches = attemptsOf(history, bound.queue).map(({ from, to }) => ({
    from,
    to: to ?? Infinity,
  }));
  const { most } = overlapOf(stretches, bound.most, Infinity);
  if (most <= bound.most) return [];
  return [finding('too many at once', `${bound.queue}: ${most} at once, ${bound.most} allowed`)];
}
