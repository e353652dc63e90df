import { attemptsOf } from './check-limits.js';
import { finding, type Attempt, type ChaosHistory, type Finding, type Retune } from './history.js';

export interface RetuneCheck {
  readonly findings: readonly Finding[];
  readonly starts: number;
}

/**
 * A lower max_concurrency was acknowledged while Redis hung. What ran before may go on, but from the
 * acknowledgement on a task may only start while fewer run than the new value allows.
 */
export function checkRetunes(history: ChaosHistory): RetuneCheck {
  const checked = history.retunes.map((retune) => checkRetune(history, retune));
  return {
    findings: checked.flatMap(({ findings }) => findings),
    starts: checked.reduce((sum, { starts }) => sum + starts, 0),
  };
}

function checkRetune(history: ChaosHistory, { queue, most, from, to }: Retune): RetuneCheck {
  const attempts = attemptsOf(history, queue);
  const starts = attempts.filter((attempt) => attempt.from > from && attempt.from < to);
  const tooMany = starts.filter((start) => runningAt(attempts, start.from) > most);
  const findings =
    tooMany.length === 0
      ? []
      : [finding('change not kept', `${queue}: ${tooMany.length} starts beyond ${most} at once`)];
  return { findings, starts: starts.length };
}

/** With the one that starts at that moment. */
function runningAt(attempts: readonly Attempt[], at: number): number {
  return attempts.filter(({ from, to }) => from <= at && (to === null || to > at)).length;
}
