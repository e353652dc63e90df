import type { AttemptError } from '../domain/attempt-error.js';
import {
  taskIdFromWire,
  timestampFromWire,
  timestampOrNullFromWire,
  timestampOrNullToWire,
  timestampToWire,
  workerIdFromWire,
} from './common-wire.js';
import { defined } from './defined.js';
import type { TaskEvent } from './events.js';
import { timestampFieldToWire, writeRequest, type FieldsOf } from './fields.js';
import type { Page, PageRequest } from './page.js';
import { problemToWire, refusalFromWire } from './problem-wire.js';
import type {
  AttemptView,
  Cancellation,
  Explanation,
  ListedTask,
  ListInclude,
  ListRequest,
  Receipt,
  ReplayRequest,
  StateChange,
  SubmitOutcome,
  TaskChange,
  TaskDraft,
  TaskFilter,
  TaskPage,
  TaskSearch,
  TaskView,
} from './tasks-api.js';
import type {
  AttemptErrorWire,
  AttemptWire,
  BatchAnswerWire,
  CancellationWire,
  ExplanationWire,
  ListedTaskWire,
  TaskSearchWire,
  ReceiptWire,
  ReplayWire,
  StateChangeWire,
  TaskChangeWire,
  TaskDraftWire,
  TaskEventWire,
  TaskFilterWire,
  TaskPageWire,
  TaskWire,
} from './tasks-schema.js';

export function taskDraftFromWire(wire: TaskDraftWire): TaskDraft {
  return defined({
    taskType: wire.task_type,
    queue: wire.queue,
    priority: wire.priority,
    parameters: wire.parameters,
    requiredCapabilities: wire.required_capabilities,
    timeoutSeconds: wire.timeout_seconds,
    maxRetries: wire.max_retries,
    idempotencyKey: wire.idempotency_key,
    workflowId: wire.workflow_id,
    workflowOnFailure: wire.workflow_on_failure,
    runAt: wire.run_at === undefined ? undefined : timestampFromWire(wire.run_at),
    delaySeconds: wire.delay_seconds,
    dispatchDeadlineSeconds: wire.dispatch_deadline_seconds,
    cost: wire.cost,
    userId: wire.user_id,
    tags: wire.tags,
    traceId: wire.trace_id,
    traceparent: wire.traceparent,
  });
}

export const draftFields = {
  taskType: 'task_type',
  queue: 'queue',
  priority: 'priority',
  parameters: 'parameters',
  requiredCapabilities: 'required_capabilities',
  timeoutSeconds: 'timeout_seconds',
  maxRetries: 'max_retries',
  idempotencyKey: 'idempotency_key',
  workflowId: 'workflow_id',
  workflowOnFailure: 'workflow_on_failure',
  runAt: { wire: 'run_at', write: timestampFieldToWire },
  delaySeconds: 'delay_seconds',
  dispatchDeadlineSeconds: 'dispatch_deadline_seconds',
  cost: 'cost',
  userId: 'user_id',
  tags: 'tags',
  traceId: 'trace_id',
  traceparent: 'traceparent',
} as const satisfies FieldsOf<TaskDraft>;

export function taskDraftToWire(draft: TaskDraft): TaskDraftWire {
  return writeRequest(draftFields, draft) as TaskDraftWire;
}

export function receiptToWire(receipt: Receipt): ReceiptWire {
  return {
    task_id: receipt.taskId,
    status: receipt.status,
    queue: receipt.queue,
    priority: receipt.priority,
    queue_position: receipt.queuePosition,
    estimated_wait_seconds: receipt.estimatedWaitSeconds,
    estimated_start_time: timestampOrNullToWire(receipt.estimatedStartTime),
    trace_id: receipt.traceId,
    created_at: timestampToWire(receipt.createdAt),
  };
}

export function receiptFromWire(wire: ReceiptWire, created: boolean): Receipt {
  return {
    taskId: taskIdFromWire(wire.task_id),
    status: wire.status,
    queue: wire.queue,
    priority: wire.priority,
    queuePosition: wire.queue_position,
    estimatedWaitSeconds: wire.estimated_wait_seconds,
    estimatedStartTime: timestampOrNullFromWire(wire.estimated_start_time),
    traceId: wire.trace_id,
    createdAt: timestampFromWire(wire.created_at),
    created,
  };
}

export function submitOutcomesToWire(outcomes: readonly SubmitOutcome[]): BatchAnswerWire {
  return { results: outcomes.map(submitOutcomeToWire) };
}

function submitOutcomeToWire(outcome: SubmitOutcome): BatchAnswerWire['results'][number] {
  return outcome.kind === 'accepted'
    ? { task: receiptToWire(outcome.receipt), created: outcome.receipt.created }
    : { error: problemToWire(outcome) };
}

export function submitOutcomesFromWire(wire: BatchAnswerWire): readonly SubmitOutcome[] {
  return wire.results.map((item) =>
    'task' in item
      ? { kind: 'accepted', receipt: receiptFromWire(item.task, item.created) }
      : { kind: 'refused', ...refusalFromWire(item.error) },
  );
}

export function taskToWire(task: TaskView): TaskWire {
  return { ...listedTaskToWire(task), parameters: task.parameters, result: task.result };
}

export function listedTaskToWire(task: ListedTask): ListedTaskWire {
  return defined({
    task_id: task.taskId,
    task_type: task.taskType,
    queue: task.queue,
    priority: task.priority,
    effective_priority: task.effectivePriority,
    status: task.status,
    parameters: task.parameters,
    required_capabilities: task.requiredCapabilities.slice(),
    retry_count: task.retryCount,
    max_retries: task.maxRetries,
    attempt: task.attempt,
    created_at: timestampToWire(task.createdAt),
    run_at: timestampOrNullToWire(task.runAt),
    queued_at: timestampOrNullToWire(task.queuedAt),
    assigned_at: timestampOrNullToWire(task.assignedAt),
    started_at: timestampOrNullToWire(task.startedAt),
    completed_at: timestampOrNullToWire(task.completedAt),
    assigned_worker_id: task.assignedWorkerId,
    progress: task.progress,
    result: task.result,
    error: task.error === null ? null : attemptErrorToWire(task.error),
    timeout_seconds: task.timeoutSeconds,
    dispatch_deadline: timestampOrNullToWire(task.dispatchDeadline),
    workflow_id: task.workflowId,
    idempotency_key: task.idempotencyKey,
    cost: task.cost,
    usage: task.usage,
    user_id: task.userId,
    tags: task.tags.slice(),
    trace_id: task.traceId,
    eligible_at: timestampToWire(task.eligibleAt),
    current_state_duration_seconds: task.currentStateDurationSeconds,
    execution_duration_seconds: task.executionDurationSeconds,
    deferrals: task.deferrals,
    returns: task.returns,
    state_history: task.history?.states.map(stateChangeToWire),
    attempts: task.history?.attempts.map(attemptToWire),
  });
}

export function taskFromWire(wire: TaskWire): TaskView {
  return { ...listedTaskFromWire(wire), parameters: wire.parameters, result: wire.result };
}

function listedTaskFromWire(wire: ListedTaskWire): ListedTask {
  return defined({
    taskId: taskIdFromWire(wire.task_id),
    taskType: wire.task_type,
    queue: wire.queue,
    priority: wire.priority,
    effectivePriority: wire.effective_priority,
    status: wire.status,
    parameters: wire.parameters,
    requiredCapabilities: wire.required_capabilities,
    retryCount: wire.retry_count,
    maxRetries: wire.max_retries,
    attempt: wire.attempt,
    createdAt: timestampFromWire(wire.created_at),
    runAt: timestampOrNullFromWire(wire.run_at),
    eligibleAt: timestampFromWire(wire.eligible_at),
    queuedAt: timestampOrNullFromWire(wire.queued_at),
    assignedAt: timestampOrNullFromWire(wire.assigned_at),
    startedAt: timestampOrNullFromWire(wire.started_at),
    completedAt: timestampOrNullFromWire(wire.completed_at),
    assignedWorkerId:
      wire.assigned_worker_id === null ? null : workerIdFromWire(wire.assigned_worker_id),
    progress: wire.progress,
    result: wire.result,
    error: wire.error === null ? null : attemptErrorFromWire(wire.error),
    timeoutSeconds: wire.timeout_seconds,
    dispatchDeadline: timestampOrNullFromWire(wire.dispatch_deadline),
    workflowId: wire.workflow_id,
    idempotencyKey: wire.idempotency_key,
    cost: wire.cost,
    usage: wire.usage,
    userId: wire.user_id,
    tags: wire.tags,
    traceId: wire.trace_id,
    currentStateDurationSeconds: wire.current_state_duration_seconds,
    executionDurationSeconds: wire.execution_duration_seconds,
    deferrals: wire.deferrals,
    returns: wire.returns,
    history:
      wire.state_history === undefined || wire.attempts === undefined
        ? undefined
        : {
            states: wire.state_history.map(stateChangeFromWire),
            attempts: wire.attempts.map(attemptFromWire),
          },
  });
}

export function attemptErrorToWire(error: AttemptError): AttemptErrorWire {
  return defined({
    code: error.code,
    message: error.message,
    retriable: error.retriable,
    retry_after_seconds: error.retryAfterSeconds,
    details: error.details,
  });
}

function attemptErrorFromWire(wire: AttemptErrorWire): AttemptError {
  return defined({
    code: wire.code,
    message: wire.message,
    retriable: wire.retriable,
    retryAfterSeconds: wire.retry_after_seconds,
    details: wire.details,
  });
}

function stateChangeToWire(change: StateChange): StateChangeWire {
  return defined({
    state: change.state,
    at: timestampToWire(change.at),
    worker_id: change.workerId,
    attempt: change.attempt,
    reason: change.reason,
  });
}

function stateChangeFromWire(wire: StateChangeWire): StateChange {
  return defined({
    state: wire.state,
    at: timestampFromWire(wire.at),
    workerId: wire.worker_id === undefined ? undefined : workerIdFromWire(wire.worker_id),
    attempt: wire.attempt,
    reason: wire.reason,
  });
}

function attemptToWire(attempt: AttemptView): AttemptWire {
  return defined({
    attempt: attempt.attempt,
    worker_id: attempt.workerId,
    started_at: timestampToWire(attempt.startedAt),
    ended_at: timestampToWire(attempt.endedAt),
    outcome: attempt.outcome,
    error: attempt.error === undefined ? undefined : attemptErrorToWire(attempt.error),
  });
}

function attemptFromWire(wire: AttemptWire): AttemptView {
  return defined({
    attempt: wire.attempt,
    workerId: workerIdFromWire(wire.worker_id),
    startedAt: timestampFromWire(wire.started_at),
    endedAt: timestampFromWire(wire.ended_at),
    outcome: wire.outcome,
    error: wire.error === undefined ? undefined : attemptErrorFromWire(wire.error),
  });
}

export function taskPageToWire(page: TaskPage): TaskPageWire {
  return {
    items: page.items.map(listedTaskToWire),
    next_cursor: page.nextCursor,
    searched_back_to: timestampOrNullToWire(page.searchedBackTo),
  };
}

export function taskPageFromWire(wire: TaskPageWire): TaskPage {
  return {
    ...listedTasksFromWire(wire),
    searchedBackTo: timestampOrNullFromWire(wire.searched_back_to),
  };
}

export function listedTasksFromWire(
  wire: Pick<TaskPageWire, 'items' | 'next_cursor'>,
): Page<ListedTask> {
  return { items: wire.items.map(listedTaskFromWire), nextCursor: wire.next_cursor };
}

export function includeFromWire(include: string | undefined): readonly ListInclude[] | undefined {
  return include?.split(',') as ListInclude[] | undefined;
}

/** Of lists; those without `include` have the same, without it. */
export const pageFields = {
  limit: 'limit',
  cursor: 'cursor',
} as const satisfies FieldsOf<PageRequest>;

export const listFields = {
  ...pageFields,
  include: { wire: 'include', write: includeToWire },
} as const satisfies FieldsOf<ListRequest>;

function includeToWire(include: unknown): unknown {
  if (!Array.isArray(include)) return include;
  return include.length === 0 ? undefined : [...new Set(include)].join(',');
}

export function taskFilterFromWire(wire: TaskFilterWire): TaskFilter {
  return defined({
    status: wire.status,
    queue: wire.queue,
    taskType: wire.task_type,
    userId: wire.user_id,
    workflowId: wire.workflow_id,
    tag: wire.tag,
  });
}

export const filterFields = {
  status: 'status',
  queue: 'queue',
  taskType: 'task_type',
  userId: 'user_id',
  workflowId: 'workflow_id',
  tag: 'tag',
} as const satisfies FieldsOf<Omit<TaskFilter, 'within'>>;

export function taskFilterToWire(filter: TaskFilter): TaskFilterWire {
  return writeRequest(filterFields, filter) as TaskFilterWire;
}

export const searchFields = {
  ...filterFields,
  text: 'text',
} as const satisfies FieldsOf<Omit<TaskSearch, 'within'>>;

export function taskSearchToWire(search: TaskSearch): TaskSearchWire {
  return writeRequest(searchFields, search) as TaskSearchWire;
}

export function taskSearchFromWire(wire: TaskSearchWire): TaskSearch {
  return { ...taskFilterFromWire(wire), ...defined({ text: wire.text }) };
}

export function explanationToWire(explanation: Explanation): ExplanationWire {
  return defined({
    task_id: explanation.taskId,
    status: explanation.status,
    reasons: explanation.reasons.map((reason) =>
      defined({
        kind: reason.kind,
        detail: reason.detail,
        until: reason.until === undefined ? undefined : timestampToWire(reason.until),
      }),
    ),
    queue_position: explanation.queuePosition,
    estimated_wait_seconds: explanation.estimatedWaitSeconds,
    estimated_start_time: timestampOrNullToWire(explanation.estimatedStartTime),
    notes: explanation.notes?.slice(),
  });
}

export function explanationFromWire(wire: ExplanationWire): Explanation {
  return defined({
    taskId: taskIdFromWire(wire.task_id),
    status: wire.status,
    reasons: wire.reasons.map((reason) =>
      defined({
        kind: reason.kind,
        detail: reason.detail,
        until: reason.until === undefined ? undefined : timestampFromWire(reason.until),
      }),
    ),
    queuePosition: wire.queue_position,
    estimatedWaitSeconds: wire.estimated_wait_seconds,
    estimatedStartTime: timestampOrNullFromWire(wire.estimated_start_time),
    notes: wire.notes,
  });
}

export function cancellationToWire(cancellation: Cancellation): CancellationWire {
  return {
    task_id: cancellation.taskId,
    status: 'cancelled',
    was_executing: cancellation.wasExecuting,
    worker_notified: cancellation.workerNotified,
  };
}

export function cancellationFromWire(wire: CancellationWire): Cancellation {
  return {
    taskId: taskIdFromWire(wire.task_id),
    wasExecuting: wire.was_executing,
    workerNotified: wire.worker_notified,
  };
}

export function taskChangeFromWire(wire: TaskChangeWire): TaskChange {
  return defined({
    priority: wire.priority,
    runAt: wire.run_at === undefined ? undefined : timestampFromWire(wire.run_at),
  });
}

export const taskChangeFields = {
  priority: 'priority',
  runAt: { wire: 'run_at', write: timestampFieldToWire },
} as const satisfies FieldsOf<TaskChange>;

export function taskChangeToWire(change: TaskChange): TaskChangeWire {
  return writeRequest(taskChangeFields, change) as TaskChangeWire;
}

export function replayFromWire(wire: ReplayWire): ReplayRequest {
  return defined({ resetRetryCount: wire.reset_retry_count, newPriority: wire.new_priority });
}

export const replayFields = {
  resetRetryCount: 'reset_retry_count',
  newPriority: 'new_priority',
} as const satisfies FieldsOf<ReplayRequest>;

export function replayToWire(request: ReplayRequest): ReplayWire {
  return writeRequest(replayFields, request) as ReplayWire;
}

export function taskEventToWire(event: TaskEvent): TaskEventWire {
  return defined({
    task_id: event.taskId,
    task_type: event.taskType,
    queue: event.queue,
    priority: event.priority,
    from: event.from,
    status: event.to,
    at: timestampToWire(event.at),
    attempt: event.attempt,
    reason: event.reason,
  });
}
