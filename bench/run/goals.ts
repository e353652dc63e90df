import { measures, type MeasureName, type Run } from './measures.js';
import { ratioOf, type Spread } from './summary.js';

interface Goal {
  readonly measure: MeasureName;
  readonly ours: string;
  readonly theirs: string;
  readonly wanted: number;
}

/** BullMQ as it is forgets everything when Redis dies; the durable one promises what Sluice promises. */
const goals: readonly Goal[] = [
  { measure: 'process', ours: 'sluice-postgres', theirs: 'graphile-local-queue', wanted: 1.25 },
  { measure: 'process', ours: 'sluice-postgres', theirs: 'bullmq-durable', wanted: 2.5 },
  { measure: 'bulk', ours: 'sluice-postgres', theirs: 'graphile-local-queue', wanted: 2 },
  { measure: 'submit', ours: 'sluice-postgres', theirs: 'bullmq-durable', wanted: 1.5 },
  { measure: 'process', ours: 'sluice-http', theirs: 'bullmq-durable', wanted: 1.75 },
  { measure: 'startP50', ours: 'sluice-postgres', theirs: 'bullmq-durable', wanted: 1 },
  { measure: 'startP99', ours: 'sluice-postgres', theirs: 'bullmq-durable', wanted: 1.25 },
  { measure: 'serviceCpu', ours: 'sluice-postgres', theirs: 'bare-postgres', wanted: 1.6 },
];

/** What was wanted and what was reached, as shares of what Postgres alone does. */
interface OfLimit {
  readonly wanted: number;
  readonly reached: number;
}

export interface Judged extends Goal {
  readonly ratio: Spread;
  readonly verdict: 'met' | 'missed';
  /** Null: the limit was not measured. */
  readonly ofLimit: OfLimit | null;
}

const limit = 'bare-postgres';

/** Those of which both sides ran. */
export function judge(runs: readonly Run[]): readonly Judged[] {
  return goals.flatMap((goal) => {
    const ratio = ratioOf(runs, goal.measure, goal.ours, goal.theirs);
    if (ratio === null) return [];
    const verdict = isMet(goal, ratio.median) ? 'met' : 'missed';
    return [{ ...goal, ratio, verdict, ofLimit: ofLimit(runs, goal) } as const];
  });
}

/** Of a time it is the other way round: twice the time of the limit is half of it. */
function ofLimit(runs: readonly Run[], { measure, ours, theirs, wanted }: Goal): OfLimit | null {
  const isRate = measures[measure].better === 'more';
  const shareOf = (name: string) =>
    isRate ? ratioOf(runs, measure, name, limit) : ratioOf(runs, measure, limit, name);
  const reached = shareOf(ours);
  const matched = shareOf(theirs);
  if (reached === null || matched === null) return null;
  const factor = isRate ? wanted : 1 / wanted;
  return { wanted: matched.median * factor, reached: reached.median };
}

function isMet({ measure, wanted }: Goal, ratio: number): boolean {
  return measures[measure].better === 'more' ? ratio >= wanted : ratio <= wanted;
}
