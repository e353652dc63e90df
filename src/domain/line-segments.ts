import type { AgeSketch } from './age-sketch.js';
import { effectivePriority, priorities, type Ageing, type Priority } from './priority.js';

/** Neighbours in a line, oldest first, as many as were counted. */
export interface LineSegment {
  /** Of its first and of its last task. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly count: number;
}

export interface Urgency {
  readonly count: number;
  /** Of the oldest; null: there is none. */
  readonly eligibleAtMs: number | null;
}

/** Ages that each segment adds to a sketch. */
const sampled = 4;

/**
 * By effective priority. Where ageing divides a segment, its tasks are taken to have come at even distances:
 * that is wrong by less than the segment.
 */
export function urgencyOf(
  segments: readonly LineSegment[],
  priority: Priority,
  ageing: Ageing,
  nowMs: number,
): Record<Priority, Urgency> {
  const found = Object.fromEntries(
    priorities.map((level) => [level, { count: 0, eligibleAtMs: null }]),
  ) as Record<Priority, { count: number; eligibleAtMs: number | null }>;
  for (const segment of segments) {
    for (const { level, count, fromMs } of divided(segment, priority, ageing, nowMs)) {
      found[level].count += count;
      if (count > 0) found[level].eligibleAtMs ??= fromMs;
    }
  }
  return found;
}

export function addAges(
  segments: readonly LineSegment[],
  nowMs: number,
  sketchOf: (ageMs: number) => AgeSketch,
): void {
  for (const { fromMs, toMs, count } of segments) {
    for (let n = 0; n < sampled; n += 1) {
      const ageMs = nowMs - (fromMs + ((toMs - fromMs) * (n + 0.5)) / sampled);
      sketchOf(ageMs).add(ageMs, count / sampled);
    }
  }
}

/** The parts of a segment that are equally urgent, the most urgent first. */
function divided(
  segment: LineSegment,
  priority: Priority,
  ageing: Ageing,
  nowMs: number,
): { readonly level: Priority; readonly count: number; readonly fromMs: number }[] {
  let before = 0;
  return priorities.flatMap((level) => {
    const ageMs = ageFor(priority, level, ageing);
    const reached = ageMs === null ? before : countBy(segment, nowMs - ageMs);
    const count = Math.max(0, reached - before);
    if (count === 0) return [];
    const fromMs = eligibleAt(segment, before);
    before += count;
    return [{ level, count, fromMs }];
  });
}

/** Of tasks at even distances, how many were eligible by then. */
function countBy({ fromMs, toMs, count }: LineSegment, untilMs: number): number {
  if (untilMs >= toMs) return count;
  if (untilMs < fromMs) return 0;
  return 1 + Math.floor(((count - 1) * (untilMs - fromMs)) / (toMs - fromMs));
}

function eligibleAt({ fromMs, toMs, count }: LineSegment, nth: number): number {
  return count <= 1 ? fromMs : fromMs + ((toMs - fromMs) * nth) / (count - 1);
}

/** From which age on a task is at least as urgent as that; null: never. */
function ageFor(priority: Priority, level: Priority, ageing: Ageing): number | null {
  const atLeast = (one: Priority) => priorities.indexOf(one) <= priorities.indexOf(level);
  if (atLeast(priority)) return Number.NEGATIVE_INFINITY;
  const thresholds = [ageing.lowToMediumMs, ageing.lowToHighMs, ageing.mediumToHighMs];
  const reached = thresholds.filter(
    (ageMs): ageMs is number =>
      ageMs !== null && atLeast(effectivePriority(priority, ageMs, ageing)),
  );
  return reached.length === 0 ? null : Math.min(...reached);
}
