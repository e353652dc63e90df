import { checkEnds } from './check-ends.js';
import { checkLimits } from './check-limits.js';
import { checkRepeats, type Repeats } from './check-repeats.js';
import { checkWorkflows } from './check-workflows.js';
import type { ChaosHistory, Finding } from './history.js';

export interface Verdict {
  readonly findings: readonly Finding[];
  readonly repeats: Repeats;
}

/** A pure function of what everybody saw. */
export function check(history: ChaosHistory): Verdict {
  const repeats = checkRepeats(history);
  return {
    findings: [
      ...checkEnds(history),
      ...checkLimits(history),
      ...checkWorkflows(history),
      ...repeats.findings,
    ],
    repeats,
  };
}
