import { Counter, type Registry } from 'prom-client';
import { attemptErrorCodes } from '../../domain/attempt-error.js';
import { priorities } from '../../domain/priority.js';
import { transitions as legalTransitions } from '../../domain/task-state.js';
import type { TaskEvent } from '../../protocol/events.js';
import { CountedPairs } from './counted-pairs.js';
import { observeTimes } from './task-times.js';

/** Of codes that are users' own. */
const otherReason = 'other';
const knownReasons: ReadonlySet<string> = new Set(Object.values(attemptErrorCodes));
const reasons = [...knownReasons, otherReason];

interface Transitions {
  readonly note: (event: TaskEvent) => void;
  /** What every task does is counted here, and told when somebody asks: to tell costs ten times as much. */
  readonly tell: () => void;
}

export function countTransitions(registry: Registry): Transitions {
  const tasks = counterIn(registry, 'tasks_total', 'Tasks that came into a state', [
    'status',
    'queue',
    'task_type',
  ]);
  const moves = counterIn(registry, 'task_state_transitions_total', 'Transitions', ['from', 'to']);
  // Prometheus sees growth from the second value of a series on: the first of each is 0.
  for (const { from, to } of legalTransitions) moves.inc({ from, to }, 0);
  const noteTimes = observeTimes(registry);
  const noteMishap = countMishaps(registry);
  const pairs = new CountedPairs();
  return {
    note: (event) => {
      const pair = pairs.of(event);
      const counts = (pair.untold[event.from] ??= {});
      counts[event.to] = (counts[event.to] ?? 0) + 1;
      noteTimes(event, pair);
      noteMishap(event);
    },
    tell: () => {
      for (const { queue, task_type, untold } of pairs) {
        for (const [from, counts] of Object.entries(untold)) {
          for (const [to, count] of Object.entries(counts)) {
            moves.inc({ from, to }, count);
            tasks.inc({ status: to, queue, task_type }, count);
            counts[to as TaskEvent['to']] = 0;
          }
        }
      }
    },
  };
}

/** What most tasks never have: retries, time-outs, lapses, ageing, a bad end. */
function countMishaps(registry: Registry): (event: TaskEvent) => void {
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
    counterIn(registry, name, help, labelNames);
  const retries = counter('task_retries_total', 'Attempts that cost a retry', [
    'priority',
    'reason',
  ]);
  const failed = counter('tasks_failed_total', 'Tasks that ended badly', ['priority', 'reason']);
  const deadLetters = counter('tasks_dlq_total', 'Tasks that became dead letters', ['reason']);
  for (const reason of reasons) {
    deadLetters.inc({ reason }, 0);
    for (const priority of priorities) {
      retries.inc({ priority, reason }, 0);
      failed.inc({ priority, reason }, 0);
    }
  }
  const promoted = counter('tasks_promoted_total', 'Tasks that were aged up when taken', [
    'from',
    'to',
  ]);
  const lapsed = counter('leases_lapsed_total', 'Attempts whose worker fell silent');
  const timedOut = counter('task_timeouts_total', 'Attempts that ran out of time');
  const unstarted = counter('task_assignment_timeouts_total', 'Tasks assigned and never started');
  return (event) => {
    const { to, priority, outcome, effectivePriority, errorCode } = event;
    if (effectivePriority !== undefined && effectivePriority !== priority) {
      promoted.inc({ from: priority, to: effectivePriority });
    }
    if (outcome === 'lapsed') lapsed.inc();
    if (outcome === 'timed_out') timedOut.inc();
    if (errorCode === attemptErrorCodes.neverStarted) unstarted.inc();
    if (to === 'pending' && costsRetry(event)) retries.inc({ priority, reason: reasonOf(event) });
    if (to === 'dead_letter') deadLetters.inc({ reason: reasonOf(event) });
    if (to === 'dead_letter' || to === 'failed') failed.inc({ priority, reason: reasonOf(event) });
  };
}

function counterIn<Label extends string>(
  registry: Registry,
  name: string,
  help: string,
  labelNames: Label[],
): Counter<Label> {
  return new Counter({ name: `sluice_${name}`, help, labelNames, registers: [registry] });
}

function costsRetry({ outcome }: TaskEvent): boolean {
  return outcome === 'failed' || outcome === 'timed_out' || outcome === 'lapsed';
}

function reasonOf({ errorCode }: TaskEvent): string {
  return errorCode !== undefined && knownReasons.has(errorCode) ? errorCode : otherReason;
}
