import { median } from '../../lab/shared/measure.js';
import { judged, noted, withSpread, type Row } from '../../lab/shared/scenario.js';
import { measures, type MeasureName, type Values } from './measures.js';

export interface Measured {
  readonly title: string;
  /** Every round of it, in the order of the rounds of all. */
  readonly rounds: readonly Values[];
}

/** A row for each measure: the small case, and each larger one with its ratio to it. */
export function compare(name: string, cases: readonly Measured[]): Row[] {
  const [small, ...larger] = cases;
  if (small === undefined) return [];
  const titles = cases.map(({ title }) => title).join('; ');
  return namesIn(small).map((measure) =>
    rowOf(`${name}, ${measures[measure].title}: ${titles}`, measure, small, larger),
  );
}

function namesIn({ rounds: [first = {}] }: Measured): MeasureName[] {
  return (Object.keys(measures) as MeasureName[]).filter((name) => first[name] !== undefined);
}

function rowOf(
  what: string,
  measure: MeasureName,
  small: Measured,
  larger: readonly Measured[],
): Row {
  const { text, goal } = measures[measure];
  const before = valuesOf(small, measure);
  const compared = larger.map((large) => againstSmall(before, valuesOf(large, measure)));
  const told = compared.map(
    ({ after, ratios }) =>
      `${withSpread(after, text)}, ratio ${withSpread(ratios, (ratio) => ratio.toFixed(2))}`,
  );
  const row = {
    what,
    measured: [withSpread(before, text), ...told].join('; '),
    numbers: Object.fromEntries([
      ['small', before],
      ...larger.flatMap(({ title }, place) => [
        [title, compared[place]?.after ?? []],
        [`${title}, ratio`, compared[place]?.ratio ?? Number.NaN],
      ]),
    ]) as Row['numbers'],
  };
  const ratios = compared.map(({ ratio }) => ratio);
  switch (goal) {
    case 'at least 0.9':
      return judged(row, '≥ 0.9', Math.min(...ratios) >= 0.9);
    case 'at most 1.1':
      return judged(row, '≤ 1.1', Math.max(...ratios) <= 1.1);
    case null:
      return noted(row);
  }
}

function valuesOf({ rounds }: Measured, measure: MeasureName): readonly number[] {
  return rounds.map((values) => values[measure] ?? Number.NaN);
}

/** Round by round, so that what slowed a round down slowed both sides. */
function againstSmall(before: readonly number[], after: readonly number[]) {
  const ratios = after.map((value, round) => value / (before[round] ?? Number.NaN));
  return { after, ratios, ratio: median(ratios) };
}
