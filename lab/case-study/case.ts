import type { Progress } from '../shared/progress.js';
import { judged, noted, type Measured, type Row } from '../shared/scenario.js';
import type { Ran } from './work.js';

export interface FleetSize {
  readonly workers: number;
  /** Of each worker. */
  readonly slots: number;
}

export const publishedFleet: FleetSize = { workers: 8, slots: 50 };

/** How one seed of the case is run. */
export interface Case {
  readonly seed: number;
  readonly tasks: number;
  readonly timeScale: number;
  readonly fleet: FleetSize;
  /** Null: Sluice on its embedded database. */
  readonly postgresUrl: string | null;
  readonly progress: Progress;
}

/** One contender, as it went. */
export interface CaseRun {
  readonly title: string;
  readonly rans: readonly Ran[];
}

export interface CaseOutcome {
  readonly rows: readonly Row[];
  readonly runs: readonly CaseRun[];
}

export interface CaseScenario {
  readonly name: string;
  /** One sentence for the reader of the table. */
  readonly about: string;
  readonly run: (one: Case) => Promise<CaseOutcome>;
}

/**
 * A goal of the case in its own time. A machine that is 5 ms late is 5 ms late at any scale, so where the
 * case goes faster the goal is named and nobody is judged by it.
 */
export function goal({ timeScale }: Case, row: Measured, wanted: string, isMet: boolean): Row {
  if (timeScale === 1) return judged(row, wanted, isMet);
  return { ...noted(row), wanted: `${wanted} at scale 1` };
}
