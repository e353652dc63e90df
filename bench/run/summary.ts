import { median } from '../median.js';
import { measureNames, measures, type MeasureName, type Run } from './measures.js';

export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

export type Summary = Readonly<Record<MeasureName, Spread>>;

export function spreadOf(values: readonly number[]): Spread {
  return { median: median(values), least: Math.min(...values), most: Math.max(...values) };
}

/** The value below which this share of them lies, as one of them. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

/** Of one contender, over all rounds. */
export function summarize(runs: readonly Run[], contender: string): Summary {
  const own = runs.filter((run) => run.contender === contender);
  return Object.fromEntries(
    measureNames.map((name) => [name, spreadOf(own.map(({ values }) => values[name]))]),
  ) as Summary;
}

export function contendersIn(runs: readonly Run[]): readonly string[] {
  return [...new Set(runs.map(({ contender }) => contender))];
}

/** Round by round, so that what slowed a round down slowed both sides. */
export function ratioOf(
  runs: readonly Run[],
  measure: MeasureName,
  ours: string,
  theirs: string,
): Spread | null {
  const ratios = runs.flatMap(({ round, contender, values }) => {
    if (contender !== ours) return [];
    const other = runs.find((run) => run.round === round && run.contender === theirs);
    return other === undefined ? [] : [values[measure] / other.values[measure]];
  });
  return ratios.length === 0 ? null : spreadOf(ratios);
}

/** How many times better theirs is: above 1, they are ahead. */
export function leadOf(measure: MeasureName, ours: number, theirs: number): number {
  return measures[measure].better === 'more' ? theirs / ours : ours / theirs;
}
