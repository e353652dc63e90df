import {
  finding,
  type Attempt,
  type ChaosHistory,
  type FaultSpan,
  type Finding,
  type TaskRow,
} from './history.js';

/** A fault is felt a little longer than it lasts: connections are made again, a sweep comes round. */
const aftermathMs = 1_000;

export interface Repeats {
  readonly findings: readonly Finding[];
  /** Attempts that were not the last of their task. */
  readonly again: number;
  /** How many of them had their handler begun. */
  readonly begunAgain: number;
  /** What explains them: `planned`, or the kind of the fault that met them, the nearest first. */
  readonly reasons: ReadonlyMap<string, number>;
}

/** Every attempt that did not end its task was meant to fail, or a fault met it. */
export function checkRepeats(history: ChaosHistory): Repeats {
  const fails = new Map(history.acknowledged.map((task) => [task.taskId, task.fails]));
  const begun = new Set(history.begins.map(({ taskId, attempt }) => `${taskId} ${attempt}`));
  const findings: Finding[] = [];
  const reasons = new Map<string, number>();
  let again = 0;
  let begunAgain = 0;
  for (const row of history.rows) {
    for (const attempt of row.attempts.filter((one) => isWithoutEnd(one))) {
      again += 1;
      if (begun.has(`${row.taskId} ${attempt.attempt}`)) begunAgain += 1;
      const reason = reasonOf(attempt, fails.get(row.taskId) ?? 0, history);
      if (reason === null) findings.push(unexplained(row, attempt));
      else reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
    }
  }
  return { findings: [...findings, ...checkBegins(history)], again, begunAgain, reasons };
}

function isWithoutEnd({ outcome }: Attempt): boolean {
  return !['succeeded', 'cancelled', 'running'].includes(outcome);
}

function reasonOf(attempt: Attempt, fails: number, history: ChaosHistory): string | null {
  if (attempt.outcome === 'failed' || attempt.outcome === 'deferred') {
    return attempt.attempt <= fails ? 'planned' : null;
  }
  const { worker } = attempt;
  const server = worker === null ? null : history.serverOf.get(worker);
  const met = history.faults.filter((fault) => overlaps(fault, attempt));
  for (const target of [worker, server, 'postgres', 'redis']) {
    const fault = met.find((one) => one.target === target);
    if (fault !== undefined) return fault.kind;
  }
  return null;
}

function overlaps(fault: FaultSpan, attempt: Attempt): boolean {
  return fault.from <= (attempt.to ?? Infinity) && fault.to + aftermathMs >= attempt.from;
}

/** One attempt is one run of the handler. */
function checkBegins({ begins }: ChaosHistory): Finding[] {
  const seen = new Set<string>();
  return begins.flatMap(({ taskId, attempt, worker }) => {
    const key = `${taskId} ${attempt}`;
    if (!seen.has(key)) {
      seen.add(key);
      return [];
    }
    return [finding('begun twice', `${taskId}, attempt ${attempt}, again by ${worker}`)];
  });
}

function unexplained(row: TaskRow, { attempt, outcome, worker, from, to }: Attempt): Finding {
  const when = `${new Date(from).toISOString()} to ${to === null ? '?' : new Date(to).toISOString()}`;
  return finding(
    'run again without a fault',
    `${row.key ?? row.taskId}: attempt ${attempt} of ${worker ?? 'unknown'} ${outcome}, ${when}`,
  );
}
