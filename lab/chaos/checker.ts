import { checkEnds } from './check-ends.js';
import { checkLimits, findPeaks, type Peak } from './check-limits.js';
import { checkRepeats, type Repeats } from './check-repeats.js';
import { checkWorkflows } from './check-workflows.js';
import type { ChaosHistory, Finding } from './history.js';

export interface Verdict {
  readonly findings: readonly Finding[];
  readonly repeats: Repeats;
  readonly peaks: readonly Peak[];
}

/** A pure function of what everybody saw. */
export function check(history: ChaosHistory): Verdict {
  const repeats = checkRepeats(history);
  const peaks = findPeaks(history);
  return {
    findings: [
      ...checkEnds(history),
      ...checkLimits(peaks),
      ...checkWorkflows(history),
      ...repeats.findings,
    ],
    repeats,
    peaks,
  };
}
