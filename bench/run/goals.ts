import { measures, type MeasureName, type Run } from './measures.js';
import { ratioOf, type Spread } from './summary.js';

interface Goal {
  readonly measure: MeasureName;
  readonly ours: string;
  readonly theirs: string;
  readonly wanted: number;
}

const goals: readonly Goal[] = [
  { measure: 'process', ours: 'sluice-postgres', theirs: 'graphile-local-queue', wanted: 2 },
  { measure: 'process', ours: 'sluice-postgres', theirs: 'bullmq', wanted: 3.5 },
  { measure: 'bulk', ours: 'sluice-postgres', theirs: 'graphile-local-queue', wanted: 2 },
  { measure: 'submit', ours: 'sluice-postgres', theirs: 'bullmq', wanted: 1 },
  { measure: 'process', ours: 'sluice-http', theirs: 'bullmq', wanted: 1 },
  { measure: 'startP50', ours: 'sluice-postgres', theirs: 'bullmq', wanted: 1 },
  { measure: 'startP99', ours: 'sluice-postgres', theirs: 'bullmq', wanted: 2 },
];

export interface Judged extends Goal {
  readonly ratio: Spread;
  readonly verdict: 'met' | 'missed';
}

/** Those of which both sides ran. */
export function judge(runs: readonly Run[]): readonly Judged[] {
  return goals.flatMap((goal) => {
    const ratio = ratioOf(runs, goal.measure, goal.ours, goal.theirs);
    if (ratio === null) return [];
    return [{ ...goal, ratio, verdict: isMet(goal, ratio.median) ? 'met' : 'missed' } as const];
  });
}

function isMet({ measure, wanted }: Goal, ratio: number): boolean {
  return measures[measure].better === 'more' ? ratio >= wanted : ratio <= wanted;
}
