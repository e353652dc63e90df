import type { Cost } from '../domain/queue-settings.js';
import type { ClaimedTask } from '../protocol/api.js';
import type { Logger } from '../runtime/log.js';
import type { HandlerContext, RunningTask } from './handler.js';
import { progressNote, type ProgressLine } from './progress.js';
import { checkedUsage } from './usage.js';

export class TaskContext implements HandlerContext {
  readonly task: RunningTask;
  readonly attempt: number;
  readonly signal: AbortSignal;
  /** A function of its own, so that handlers can take it out of the context. */
  readonly progress: (percent: number, message?: string) => void;
  readonly usage: (used: Cost) => void;
  readonly #workerLog: Logger;
  #log: Logger | null = null;
  #used: Cost | null = null;

  constructor(task: ClaimedTask, signal: AbortSignal, progress: ProgressLine, workerLog: Logger) {
    const { lease: _lease, ...running } = task;
    this.task = running;
    this.attempt = task.attempt;
    this.signal = signal;
    this.progress = (percent, message) => {
      const note = progressNote(percent, message);
      // Only people look at it: no reason to fail the attempt.
      if (note === null) this.log.warn({ percent }, 'progress takes a number from 0 to 100');
      else progress.say(note);
    };
    this.usage = (used) => {
      this.#used = checkedUsage(used);
    };
    this.#workerLog = workerLog;
  }

  /** Null: its handler said nothing. */
  get used(): Cost | null {
    return this.#used;
  }

  /** Made when first asked for: most handlers log nothing, and a child logger is not free. */
  get log(): Logger {
    const { taskId, taskType, attempt, traceId } = this.task;
    this.#log ??= this.#workerLog.child({
      task_id: taskId,
      task_type: taskType,
      attempt,
      ...(traceId === null ? {} : { trace_id: traceId }),
    });
    return this.#log;
  }
}
