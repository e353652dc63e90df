import type { Cost } from '../domain/queue-settings.js';
import type { ClaimedTask } from '../protocol/api.js';
import type { Logger } from '../runtime/log.js';
import type { HandlerContext, RunningTask } from './handler.js';
import { progressNote, type ProgressLine } from './progress.js';
import type { Stop } from './stop.js';
import { checkedUsage } from './usage.js';

export interface TaskContext extends HandlerContext {
  /** Null: its handler said nothing. */
  readonly used: Cost | null;
}

/**
 * What a handler is given. What is not free is made when it is first asked for, since most handlers use
 * little of it. All of it are members of its own, so that a handler can take them out or copy them.
 */
export function createTaskContext(
  claimed: ClaimedTask,
  stop: Stop,
  line: ProgressLine,
  workerLog: Logger,
): TaskContext {
  let task: RunningTask | null = null;
  let log: Logger | null = null;
  let used: Cost | null = null;
  return {
    attempt: claimed.attempt,
    get signal() {
      return stop.signal;
    },
    get task() {
      return (task ??= withoutLease(claimed));
    },
    get log() {
      return (log ??= logOf(claimed, workerLog));
    },
    get used() {
      return used;
    },
    progress(percent, message) {
      const note = progressNote(percent, message);
      // Only people look at it: no reason to fail the attempt.
      if (note !== null) line.say(note);
      else (log ??= logOf(claimed, workerLog)).warn({ percent }, notAPercentage);
    },
    usage(said) {
      used = checkedUsage(said);
    },
  };
}

const notAPercentage = 'progress takes a number from 0 to 100';

function withoutLease({ lease: _lease, ...running }: ClaimedTask): RunningTask {
  return running;
}

function logOf({ taskId, taskType, attempt, traceId }: ClaimedTask, workerLog: Logger): Logger {
  return workerLog.child({
    task_id: taskId,
    task_type: taskType,
    attempt,
    ...(traceId === null ? {} : { trace_id: traceId }),
  });
}
