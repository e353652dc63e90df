/** Most urgent first; the index of a priority is its rank, and how it is stored. */
export const priorities = ['high', 'medium', 'low'] as const;

export type Priority = (typeof priorities)[number];

/** 0 is the most urgent. */
export type PriorityRank = 0 | 1 | 2;

export function rankOf(priority: Priority): PriorityRank {
  return priorities.indexOf(priority) as PriorityRank;
}

export function priorityOf(rank: number): Priority {
  const priority = priorities[rank];
  if (priority === undefined) throw new RangeError(`no priority has rank ${String(rank)}`);
  return priority;
}

/** How long a task waits before it counts as more urgent; null means never. */
export interface Ageing {
  readonly lowToMediumMs: number | null;
  readonly lowToHighMs: number | null;
  readonly mediumToHighMs: number | null;
}

export const defaultAgeing: Ageing = {
  lowToMediumMs: 600_000,
  lowToHighMs: 1_800_000,
  mediumToHighMs: 1_200_000,
};

export const noAgeing: Ageing = { lowToMediumMs: null, lowToHighMs: null, mediumToHighMs: null };

/** Never less urgent than submitted, and never less urgent at a greater age. */
export function effectivePriority(priority: Priority, ageMs: number, ageing: Ageing): Priority {
  switch (priority) {
    case 'high':
      return 'high';
    case 'medium':
      return reached(ageMs, ageing.mediumToHighMs) ? 'high' : 'medium';
    case 'low':
      if (reached(ageMs, ageing.lowToHighMs)) return 'high';
      return reached(ageMs, ageing.lowToMediumMs) ? 'medium' : 'low';
  }
}

/** The next age at which the effective priority changes, or null when it never will again. */
export function nextPromotionAgeMs(
  priority: Priority,
  ageMs: number,
  ageing: Ageing,
): number | null {
  const thresholds =
    priority === 'low'
      ? [ageing.lowToMediumMs, ageing.lowToHighMs]
      : priority === 'medium'
        ? [ageing.mediumToHighMs]
        : [];
  const now = effectivePriority(priority, ageMs, ageing);
  const ahead = thresholds.filter(
    (threshold): threshold is number =>
      threshold !== null &&
      threshold > ageMs &&
      effectivePriority(priority, threshold, ageing) !== now,
  );
  return ahead.length === 0 ? null : Math.min(...ahead);
}

function reached(ageMs: number, thresholdMs: number | null): boolean {
  return thresholdMs !== null && ageMs >= thresholdMs;
}
