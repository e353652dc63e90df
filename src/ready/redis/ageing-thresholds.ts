import type { Ageing } from '../../domain/priority.js';

/** In whole milliseconds, so that "old enough" and "due at" can't differ by a rounding. */
export function thresholdsOf(ageing: Ageing): Record<keyof Ageing, number> {
  const lowToHighMs = threshold(ageing.lowToHighMs);
  return {
    lowToHighMs,
    lowToMediumMs: Math.min(threshold(ageing.lowToMediumMs), lowToHighMs),
    mediumToHighMs: threshold(ageing.mediumToHighMs),
  };
}

function threshold(ageMs: number | null): number {
  return ageMs === null ? Number.POSITIVE_INFINITY : Math.ceil(ageMs);
}
