import { attemptErrorCodes, isRetriable, type AttemptError } from './attempt-error.js';

/** A worker that fails so often in a row, at what others succeed at, is benched: it gets nothing. */
export const failuresToBench = 5;
/** What it gets at once after that, until one of them succeeds. If so many fail, it is benched again. */
export const probesAtOnce = 3;

/** Failures of one worker at one kind of task: those of one lane, which whoever can do one can do. */
export interface Failures {
  readonly count: number;
  /** When the first was reported. */
  readonly sinceMs: number;
  /** When the latest of the attempts began. */
  readonly begunMs: number;
}

/** Since the last success at anything, by kind. */
export type FailuresInARow = ReadonlyMap<string, Failures>;

/** Of one worker at one kind of task, since its last failure at it. */
export interface Successes {
  readonly sinceMs: number;
  readonly lastMs: number;
}

/** Whether a worker is benched, and what it was given to try since. */
export interface Trial {
  /** Null: it never was, or has succeeded since. */
  readonly benchedUntilMs: number | null;
  /** Given and not reported yet, as far as is known. */
  readonly probesOut: number;
  /** When the last probe was given. */
  readonly probedAtMs: number;
}

export type Standing =
  | { readonly kind: 'trusted' }
  | { readonly kind: 'benched'; readonly untilMs: number }
  /** `untilMs`: when probes that nobody has reported are given up, and it gets others. */
  | { readonly kind: 'tried'; readonly probesLeft: number; readonly untilMs: number };

const { rateLimited, quotaExhausted, forbidden } = attemptErrorCodes;
const neverTheWorkers: ReadonlySet<string> = new Set([rateLimited, quotaExhausted, forbidden]);

/**
 * A task that can't be done is not its worker's fault, nor is a service that says "slow down". All
 * else may be: a timeout, a service out of reach or an API key that is refused too, when others
 * succeed.
 */
export function countsAgainstWorker(error: AttemptError): boolean {
  return isRetriable(error) && !neverTheWorkers.has(error.code);
}

/**
 * Whether another's successes show that the failures are their worker's own. Those from before the
 * first failure do not: the service may have gone down since, and one poll brings enough tasks to fail
 * five before anybody else has tried. Nor do those that came after the last attempt had begun: it may
 * have met the end of an outage.
 */
export function isRefuted(failures: Failures, successes: Successes): boolean {
  return successes.lastMs > failures.sinceMs && successes.sinceMs < failures.begunMs;
}

/** Only failures at what others succeed at count: else it is the service that fails, for all. */
export function mustBeBenched(
  failures: FailuresInARow,
  isTried: boolean,
  othersSucceedAt: (kind: string) => boolean,
): boolean {
  let blamed = 0;
  for (const [kind, { count }] of failures) if (othersSucceedAt(kind)) blamed += count;
  return blamed >= neededToBench(isTried);
}

/** Enough failures, whoever else succeeds. */
export function mayBeBenched(failures: FailuresInARow, isTried: boolean): boolean {
  return mustBeBenched(failures, isTried, () => true);
}

function neededToBench(isTried: boolean): number {
  return isTried ? probesAtOnce : failuresToBench;
}

export function standingOf(trial: Trial, nowMs: number, benchMs: number): Standing {
  const { benchedUntilMs, probesOut, probedAtMs } = trial;
  if (benchedUntilMs === null) return { kind: 'trusted' };
  if (nowMs < benchedUntilMs) return { kind: 'benched', untilMs: benchedUntilMs };
  const untilMs = probedAtMs + benchMs;
  const out = nowMs < untilMs ? probesOut : 0;
  return { kind: 'tried', probesLeft: Math.max(0, probesAtOnce - out), untilMs };
}

/** How many of those it asks for it may get. */
export function allowance(standing: Standing, wanted: number): number {
  switch (standing.kind) {
    case 'trusted':
      return wanted;
    case 'benched':
      return 0;
    case 'tried':
      return Math.min(wanted, standing.probesLeft);
  }
}
