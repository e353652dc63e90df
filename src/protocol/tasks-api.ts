import type { AttemptError, AttemptOutcome } from '../domain/attempt-error.js';
import type { CeilingReached, ErrorCode, FieldError } from '../domain/errors.js';
import type { Confinement } from '../domain/confinement.js';
import type { TaskId, WorkerId } from '../domain/ids.js';
import type { JsonObject, JsonValue } from '../domain/json.js';
import type { Priority } from '../domain/priority.js';
import type { Cost } from '../domain/queue-settings.js';
import type { TaskState } from '../domain/task-state.js';
import type { Caller } from './caller.js';
import type { Page, PageRequest } from './page.js';

export interface TaskDraft {
  readonly taskType: string;
  readonly queue?: string;
  readonly priority?: Priority;
  readonly parameters?: JsonObject;
  readonly requiredCapabilities?: readonly string[];
  readonly timeoutSeconds?: number;
  readonly maxRetries?: number;
  readonly idempotencyKey?: string;
  readonly workflowId?: string;
  readonly workflowOnFailure?: 'halt' | 'continue';
  readonly runAt?: Date;
  readonly delaySeconds?: number;
  readonly dispatchDeadlineSeconds?: number | null;
  readonly cost?: Cost;
  readonly userId?: string;
  readonly tags?: readonly string[];
  /** Any text. Absent: the trace of `traceparent`, or the task's own id. */
  readonly traceId?: string;
  /** W3C trace context: the span that submits it. */
  readonly traceparent?: string;
}

export interface Receipt {
  readonly taskId: TaskId;
  readonly status: TaskState;
  readonly queue: string;
  readonly priority: Priority;
  readonly queuePosition: number | null;
  readonly estimatedWaitSeconds: number | null;
  /** Null: unknown. */
  readonly estimatedStartTime: Date | null;
  readonly traceId: string;
  readonly createdAt: Date;
  /** False when the idempotency key already had this task. */
  readonly created: boolean;
}

export type SubmitOutcome =
  | { readonly kind: 'accepted'; readonly receipt: Receipt }
  | {
      readonly kind: 'refused';
      readonly code: ErrorCode;
      readonly detail: string;
      readonly errors?: readonly FieldError[];
      readonly retryAfterSeconds?: number;
      readonly ceiling?: CeilingReached;
    };

export interface TaskView {
  readonly taskId: TaskId;
  readonly taskType: string;
  readonly queue: string;
  readonly priority: Priority;
  readonly effectivePriority: Priority;
  readonly status: TaskState;
  readonly parameters: JsonObject;
  readonly requiredCapabilities: readonly string[];
  readonly retryCount: number;
  readonly maxRetries: number;
  readonly attempt: number;
  readonly createdAt: Date;
  readonly runAt: Date | null;
  readonly eligibleAt: Date;
  readonly queuedAt: Date | null;
  readonly assignedAt: Date | null;
  readonly startedAt: Date | null;
  readonly completedAt: Date | null;
  readonly assignedWorkerId: WorkerId | null;
  readonly progress: { readonly percent: number; readonly message: string | null } | null;
  readonly result: JsonValue;
  readonly error: AttemptError | null;
  readonly timeoutSeconds: number;
  readonly dispatchDeadline: Date | null;
  readonly workflowId: string | null;
  readonly idempotencyKey: string | null;
  readonly cost: Cost | null;
  readonly usage: Cost | null;
  readonly userId: string | null;
  readonly tags: readonly string[];
  readonly traceId: string;
  readonly currentStateDurationSeconds: number;
  /** Of the present or last attempt, from its start; null when no attempt has started. */
  readonly executionDurationSeconds: number | null;
  /** Attempts that went back without costing a retry, because the service pushed back. */
  readonly deferrals: number;
  /** Times that a worker took the task and never started it. */
  readonly returns: number;
  /** Only when asked for. */
  readonly history?: TaskHistory;
}

/** What a list leaves out unless it is asked for. */
export type ListInclude = 'parameters' | 'result';

export interface ListRequest extends PageRequest {
  readonly include?: readonly ListInclude[];
}

/** A task as lists answer it: without parameters and result, unless `include` names them. */
export type ListedTask = Omit<TaskView, ListInclude> & Partial<Pick<TaskView, ListInclude>>;

export interface TaskHistory {
  readonly states: readonly StateChange[];
  readonly attempts: readonly AttemptView[];
}

export interface StateChange {
  readonly state: TaskState;
  readonly at: Date;
  readonly workerId?: WorkerId;
  readonly attempt?: number;
  readonly reason?: string;
}

export interface AttemptView {
  readonly attempt: number;
  readonly workerId: WorkerId;
  readonly startedAt: Date;
  readonly endedAt: Date;
  readonly outcome: AttemptOutcome;
  readonly error?: AttemptError;
}

export const waitReasonKinds = [
  'scheduled',
  'workflow',
  'no_room',
  'rate_limit',
  'max_concurrency',
  'paused',
  'circuit_open',
  'no_worker',
  'workers_busy',
  'behind',
] as const;

export interface WaitReason {
  readonly kind: (typeof waitReasonKinds)[number];
  readonly detail: string;
  readonly until?: Date;
}

export interface Explanation {
  readonly taskId: TaskId;
  readonly status: TaskState;
  readonly reasons: readonly WaitReason[];
  /** How many tasks of its queue come before it, 1,000 at most; null when it does not stand in line. */
  readonly queuePosition: number | null;
  /** Null: unknown. */
  readonly estimatedWaitSeconds: number | null;
  /** Now and the estimated wait. */
  readonly estimatedStartTime: Date | null;
  /** What is worth knowing but keeps it from nothing; absent when there is none. */
  readonly notes?: readonly string[];
}

export interface TaskFilter {
  readonly status?: TaskState;
  readonly queue?: string;
  readonly taskType?: string;
  readonly userId?: string;
  readonly workflowId?: string;
  readonly tag?: string;
  /** What the caller reaches; never a part of a request. */
  readonly within?: Confinement;
}

/** Of a list alone. */
export interface TaskSearch extends TaskFilter {
  /**
   * Its parameters hold this text: a plain part of their JSON, capitals and all. One page looks at a bounded number of
   * tasks and bytes.
   */
  readonly text?: string;
}

export interface TaskPage extends Page<ListedTask> {
  /** All matches that were submitted later are in this page or an earlier one; null: all tasks were looked at. */
  readonly searchedBackTo: Date | null;
}

export interface Cancellation {
  readonly taskId: TaskId;
  readonly wasExecuting: boolean;
  readonly workerNotified: boolean;
}

export interface TaskChange {
  readonly priority?: Priority;
  readonly runAt?: Date;
}

export interface ReplayRequest {
  readonly resetRetryCount?: boolean;
  readonly newPriority?: Priority;
}

export interface TaskApi {
  submit(draft: TaskDraft, caller?: Caller): Promise<Receipt>;
  /** Answers in order; one refused draft does not sink the rest. */
  submitMany(drafts: readonly TaskDraft[], caller?: Caller): Promise<readonly SubmitOutcome[]>;
  getTask(taskId: TaskId, options?: { readonly history?: boolean }): Promise<TaskView>;
  /** The task when it ended, or as it is when the time is over. */
  waitForTask(taskId: TaskId, timeoutMs: number, signal?: AbortSignal): Promise<TaskView>;
  explainTask(taskId: TaskId): Promise<Explanation>;
  /** A page ends early, with a cursor, when it passes 8 MiB. */
  listTasks(filter: TaskSearch, page?: ListRequest): Promise<TaskPage>;
  cancelTask(taskId: TaskId): Promise<Cancellation>;
  /** The receipt, for a key that may not read. */
  changeTask(taskId: TaskId, change: TaskChange): Promise<TaskView | Receipt>;
  replayTask(taskId: TaskId, request?: ReplayRequest): Promise<TaskView>;
}
