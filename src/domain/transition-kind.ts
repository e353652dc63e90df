import type { AttemptOutcome } from './attempt-error.js';
import type { TaskState } from './task-state.js';

/** Null `to`: its worker does not know what became of it. */
export interface Moved {
  readonly from: TaskState | 'new';
  readonly to: TaskState | null;
  readonly outcome?: AttemptOutcome;
  readonly errorCode?: string;
}

/** Whether an operator may want to look at it: a retry, a lapse, a cancellation, an end without success. */
export function isProblem({ to, outcome, errorCode }: Moved): boolean {
  switch (to) {
    case null:
    case 'dead_letter':
    case 'failed':
    case 'cancelled':
      return true;
    case 'pending':
      return outcome !== undefined && (outcome !== 'released' || errorCode !== undefined);
    default:
      return false;
  }
}

/** How a transition is called in the log. */
export function transitionText(moved: Moved): string {
  const { from, to } = moved;
  if (from === 'new') return 'task submitted';
  switch (to) {
    case null:
      return 'attempt failed';
    case 'queued':
      return 'task queued';
    case 'assigned':
      return 'task assigned';
    case 'executing':
      return 'task started';
    case 'completed':
      return 'task completed';
    case 'dead_letter':
      return 'task is a dead letter';
    case 'failed':
      return 'task expired';
    case 'cancelled':
      return 'task cancelled';
    case 'pending':
      return returnText(moved);
  }
}

function returnText({ from, outcome, errorCode }: Moved): string {
  switch (outcome) {
    case 'lapsed':
      return 'lease lapsed, task retried';
    case 'timed_out':
      return 'attempt timed out, task retried';
    case 'deferred':
      return 'task deferred';
    case 'released':
      return errorCode === undefined ? 'task released' : 'task was never started, and returned';
    case undefined:
      return from === 'queued' || from === 'pending' ? 'task rescheduled' : 'task replayed';
    default:
      return 'task retried';
  }
}
