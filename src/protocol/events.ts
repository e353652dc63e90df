import type { AttemptOutcome } from '../domain/attempt-error.js';
import type { TaskId, WorkerId } from '../domain/ids.js';
import type { Priority } from '../domain/priority.js';
import type { TaskState } from '../domain/task-state.js';

/** A task changed its state; told after the commit. Live events, metrics and logs hear of it. */
export interface TaskEvent {
  readonly taskId: TaskId;
  readonly queue: string;
  readonly taskType: string;
  readonly priority: Priority;
  readonly from: TaskState | 'new';
  readonly to: TaskState;
  readonly at: Date;
  readonly attempt: number;
  /** That has the task, or had it until now. */
  readonly workerId?: WorkerId;
  /** As the row of the task keeps it; `traceIdFromText` reads it. */
  readonly trace?: string | null;
  readonly reason?: string;
  /** How the attempt ended that this transition ends. */
  readonly outcome?: AttemptOutcome;
  /** The code of the error that the attempt, or the task, ended with. */
  readonly errorCode?: string;
  /** The first 500 characters. */
  readonly errorMessage?: string;
  /** When an attempt ends and another one follows: how long until then. */
  readonly retryInMs?: number;
  /** At the claim: how urgent ageing had made it. */
  readonly effectivePriority?: Priority;
  /** At the claim: how long it had been eligible. */
  readonly waitMs?: number;
  /** At the claim: how long ago it was taken out of the ready queue. */
  readonly assignmentMs?: number;
  /** When an attempt ends: how long it ran. */
  readonly durationMs?: number;
  /** Of the unit `tokens`. At the claim: what it is expected to cost; when an attempt ends: what it did cost. */
  readonly tokens?: number;
}
