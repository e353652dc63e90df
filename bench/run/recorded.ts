import { measures, type MeasureName } from './measures.js';
import type { Judged } from './goals.js';

/** Ratios of a short run on a quiet machine, by what they compare. */
export type Recorded = Readonly<Record<string, number>>;

/** Latencies of few samples on a busy machine say nothing: rates alone are compared. */
function isCompared({ measure }: { readonly measure: MeasureName }): boolean {
  return measures[measure].better === 'more';
}

function keyOf({ measure, ours, theirs }: Pick<Judged, 'measure' | 'ours' | 'theirs'>) {
  return `${measure}: ${ours} / ${theirs}`;
}

export function toRecorded(judged: readonly Judged[]): Recorded {
  const compared = judged.filter(isCompared);
  return Object.fromEntries(
    compared.map((one) => [keyOf(one), Number(one.ratio.median.toFixed(2))]),
  );
}

/** One sentence for each ratio that has fallen below half of what it was. */
export function grossRegressions(judged: readonly Judged[], recorded: Recorded): string[] {
  return judged.filter(isCompared).flatMap((one) => {
    const before = recorded[keyOf(one)];
    const now = one.ratio.median;
    if (before === undefined || now >= before / 2) return [];
    return [`${keyOf(one)} is ${now.toFixed(2)}, less than half of ${before.toFixed(2)}`];
  });
}
