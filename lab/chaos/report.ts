import { count, judged, noted, seconds, type Row } from '../shared/scenario.js';
import type { Rule } from './history.js';
import type { ChaosRun } from './run.js';

const rules: Readonly<Record<Rule, string>> = {
  lost: 'acknowledged and not ended, or unknown',
  'completed twice': 'completed more than once, by the database or by the answers to workers',
  'result not kept': 'a result was accepted and is not there, or another is',
  'one key, two tasks': 'idempotency keys with more than one task',
  'over the limit': 'queues with more starts in a window than their limit allows',
  'too many at once': 'queues with more at once than their max_concurrency',
  'change not kept': 'starts beyond a max_concurrency that was lowered while Redis hung',
  'out of order': 'members of a workflow out of order',
  'two members at once': 'members of a workflow at once',
  'run again without a fault': 'attempts that were repeated and that no fault explains',
  'begun twice': 'attempts whose handler began twice',
  'cancel not kept': 'cancelled, and ended otherwise',
  'ended for no reason': 'dead letters, and cancelled though nobody asked',
};

export function rowsOf(run: ChaosRun): readonly Row[] {
  const { findings, repeats } = run.verdict;
  const judgedRows = Object.entries(rules).map(([rule, what]) => {
    const found = findings.filter((one) => one.rule === rule).length;
    return judged({ what, measured: count(found), numbers: { found } }, '0', found === 0);
  });
  return [...loadRows(run), ...judgedRows, ...noteRows(run, repeats.again)];
}

function loadRows({ history, schedule }: ChaosRun): Row[] {
  const { acknowledged, rows } = history;
  const attempts = rows.reduce((sum, row) => sum + row.attempts.length, 0);
  const workflows = new Set(acknowledged.flatMap(({ workflow }) => workflow?.id ?? []));
  return [
    noted({
      what: 'faults; tasks acknowledged; workflows among them; attempts',
      measured: [schedule.length, acknowledged.length, workflows.size, attempts]
        .map(count)
        .join('; '),
      numbers: { faults: schedule.length, tasks: acknowledged.length, attempts },
    }),
    noted({
      what: 'faults by kind',
      measured: tally(schedule.map(({ kind }) => kind)),
      numbers: {},
    }),
  ];
}

function noteRows(run: ChaosRun, again: number): Row[] {
  const { repeats, peaks } = run.verdict;
  const { reasons, begunAgain } = repeats;
  return [
    noted({
      what: 'the most starts in a window, as far as certain, and the most at once',
      measured: peaks
        .map(({ queue, seen, allowed, what }) => `${queue} ${seen} of ${allowed} ${what}`)
        .join(', '),
      numbers: {},
    }),
    noted({
      what: 'changes of max_concurrency while Redis hung; starts that were compared with them',
      measured: `${count(run.history.retunes.length)}; ${count(run.verdict.startsAfterRetunes)}`,
      numbers: { retunes: run.history.retunes.length },
    }),
    noted({
      what: 'attempts that were repeated; of these, with a handler that had begun',
      measured: `${count(again)}; ${count(begunAgain)}`,
      numbers: { again, begunAgain },
    }),
    noted({ what: 'what explains them', measured: listed(reasons), numbers: {} }),
    noted({
      what: 'results that came too late and were refused; calls that the driver had to repeat',
      measured: `${count(run.refusedResults)}; ${listed(run.refusals)}`,
      numbers: { refusedResults: run.refusedResults },
    }),
    noted({
      what: 'processes that ended by themselves and were started again',
      measured: count(run.gaveUp),
      numbers: { gaveUp: run.gaveUp },
    }),
    noted({
      what: 'from the last fault until everything had ended',
      measured: seconds(run.settledMs),
      numbers: { settledMs: run.settledMs },
    }),
  ];
}

function tally(names: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return listed(counts);
}

function listed(counts: ReadonlyMap<string, number>): string {
  const sorted = [...counts].sort(([, a], [, b]) => b - a);
  return sorted.map(([name, times]) => `${name} ${times}`).join(', ') || 'none';
}
