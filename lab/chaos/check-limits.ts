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
  readonly what: 'in a window' | 'beyond the rate' | 'at once';
  readonly queue: string;
  readonly seen: number;
  readonly allowed: number;
}

export function findPeaks(history: ChaosHistory): readonly Peak[] {
  return [
    ...history.limits.flatMap((bound) => findRatePeaks(history, bound)),
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
export function attemptsOf({ rows, begins }: ChaosHistory, queue: string): readonly Attempt[] {
  const begun = new Set(begins.map(({ taskId, attempt }) => `${taskId} ${attempt}`));
  return rows
    .filter((row) => row.queue === queue)
    .flatMap(({ taskId, attempts }) =>
      attempts.filter(({ attempt }) => begun.has(`${taskId} ${attempt}`)),
    );
}

function findRatePeaks(history: ChaosHistory, bound: RateBound): Peak[] {
  const { queue, most, windowMs, burst } = bound;
  const stalls = history.faults.filter(({ kind }) => kind.startsWith('freeze'));
  const grants = attemptsOf(history, queue)
    .filter(({ from }) => from < history.limitsUntil)
    .map(({ from }) => grantSpan(from, stalls));
  const inWindow = mostCertainlyWithin(grants, windowMs);
  const peak: Peak = { what: 'in a window', queue, seen: inWindow, allowed: most };
  if (burst === null) return [peak];
  const beyond = mostBeyondRate(grants, (most - burst) / windowMs);
  return [peak, { what: 'beyond the rate', queue, seen: beyond, allowed: burst }];
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
  let most = 0;
  for (const { count, lengthMs } of stretchesOf(grants)) {
    if (lengthMs < windowMs) most = Math.max(most, count);
  }
  return most;
}

/** A bucket that forgets its level is full again, which shows in a short stretch. */
function mostBeyondRate(grants: readonly GrantSpan[], ratePerMs: number): number {
  let most = 0;
  for (const { count, lengthMs } of stretchesOf(grants)) {
    most = Math.max(most, Math.floor(count - lengthMs * ratePerMs));
  }
  return most;
}

/** From the soonest time of one grant to the latest of another, and how many lie between. */
function* stretchesOf(
  grants: readonly GrantSpan[],
): Generator<{ readonly count: number; readonly lengthMs: number }> {
  const byLatest = grants.toSorted((a, b) => a.latest - b.latest);
  for (const { soonest: begin } of grants) {
    let count = 0;
    for (const { soonest, latest } of byLatest) {
      if (latest < begin || soonest < begin) continue;
      count += 1;
      yield { count, lengthMs: latest - begin };
    }
  }
}
