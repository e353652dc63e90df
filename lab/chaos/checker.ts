import { checkEnds } from './check-ends.js';
import { checkLimits, findPeaks, type Peak } from './check-limits.js';
import { checkRepeats, type Repeats } from './check-repeats.js';
import { checkRetunes } from './check-retunes.js';
import { checkWorkflows } from './check-workflows.js';
import type { ChaosHistory, Finding } from './history.js';

export interface Verdict {
  readonly findings: readonly Finding[];
  readonly repeats: Repeats;
  readonly peaks: readonly Peak[];
  /** Starts that fell into the time of a change that was made while Redis hung. */
  readonly startsAfterRetunes: number;
}

/** A pure function of what everybody saw. */
export function check(history: ChaosHistory): Verdict {
  const repeats = checkRepeats(history);
  const peaks = findPeaks(history);
  const retunes = checkRetunes(history);
  return {
    findings: [
      ...checkEnds(history),
      ...checkLimits(peaks),
      ...retunes.findings,
      ...checkWorkflows(history),
      ...repeats.findings,
    ],
    repeats,
    peaks,
    startsAfterRetunes: retunes.starts,
  };
}
