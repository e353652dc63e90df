import type { TaskId } from '../domain/ids.js';
import type { JsonObject, JsonValue } from '../domain/json.js';
import { defaultAgeing, effectivePriority, priorityOf, type Ageing } from '../domain/priority.js';
import type { Cost } from '../domain/queue-settings.js';
import { traceIdFromText } from '../domain/trace.js';
import { bounds } from '../protocol/bounds.js';
import type { ListedTask, ListInclude, TaskView } from '../protocol/tasks-api.js';
import {
  lastExecution,
  lastPassage,
  stateSince,
  tellHistory,
  type ToldColumns,
} from './task-history.js';
import { attemptErrorFromJson } from './task-row.js';

/** A living task and one in history, in the same columns, for a union of both. */
const sharedColumns = `id, task_type, queue, capabilities, priority, status, retry_count,
  max_retries, attempt, created_at, run_at, eligible_at, queued_at, assigned_at, started_at,
  ended_at, worker_id, progress_percent, progress_message, error, timeout_seconds,
  dispatch_deadline_seconds, workflow_id, idempotency_key, cost, user_id, tags, trace_id,
  past_attempts, owner, deferrals, returns`;
export const livingColumns = `${sharedColumns}, null::json as result, null::json as usage`;
export const historyColumns = `${sharedColumns}, result, usage`;

/** Which of the large columns are answered. */
export type ViewParts = readonly (ListInclude | 'history')[];

/**
 * All past attempts, or the newest 8 MiB of them: a task may be tried a hundred times, and each error
 * may hold 256 KiB of details.
 */
const newestAttempts = `(
  select array_agg(entry order by n) from (
    select entry, n, sum(octet_length(entry::text)) over (order by n desc) as bytes
    from unnest(task.past_attempts) with ordinality as past (entry, n)
  ) recent where bytes <= ${bounds.answerBytes}
)`;
const lastAttempt = 'task.past_attempts[cardinality(task.past_attempts):]';

/**
 * What a view needs beyond those columns, for a task aliased `task`: the last of its past attempts
 * (all of them with its history), its parameters, its queue's ageing. array_to_json, because it
 * does not look into the elements: a message may hold an escape that Postgres can't turn into text.
 */
export function viewColumns(parts: ViewParts): string {
  const kept = parts.includes('history') ? newestAttempts : lastAttempt;
  const parameters = parts.includes('parameters') ? parametersOfTask : 'null::json';
  return `task.id, task.task_type, task.queue, task.capabilities, task.priority, task.status,
    task.retry_count, task.max_retries, task.attempt, task.created_at, task.run_at,
    task.eligible_at, task.queued_at, task.assigned_at, task.started_at, task.ended_at,
    task.worker_id, task.progress_percent, task.progress_message, task.error,
    task.timeout_seconds, task.dispatch_deadline_seconds, task.workflow_id, task.idempotency_key,
    task.cost, task.user_id, task.tags, task.trace_id, task.usage, task.deferrals, task.returns,
    ${parts.includes('result') ? 'task.result' : 'null::json as result'},
    coalesce(array_to_json(${kept}), '[]') as past_attempts, ${parameters} as parameters,
    queue.name is not null as queue_known, queue.low_to_medium_ms, queue.low_to_high_ms,
    queue.medium_to_high_ms`;
}

export const viewJoins = 'left join sluice.queues queue on queue.name = task.queue';

const parametersOfTask =
  '(select parameters from sluice.task_inputs input where input.task_id = task.id)';

/** What a task takes up in an answer, as JSON, besides its texts and `sizedColumns`: about. */
const taskBytes = 1_500;

/** Upper bound of the bytes of an answer that a task aliased `task` takes. It reads toasted values. */
function bytesOf(parts: ViewParts): string {
  const result = parts.includes('result') ? 'coalesce(octet_length(task.result::text), 0)' : '0';
  const parameters = parts.includes('parameters') ? bytesOfParameters : '0';
  return `${taskBytes} + octet_length(task.tags::text)
    + coalesce(octet_length(task.error::text), 0)
    + coalesce(octet_length((${lastAttempt})::text), 0)
    + coalesce(octet_length(task.progress_message), 0)
    + ${result} + ${parameters}`;
}

const bytesOfParameters = `coalesce((select octet_length(${parametersOfTask}::text)), 0)`;

/** Tasks whose sizes are summed up before the next look at whether the answer is full. */
const blockSize = 8;

/**
 * Common table expressions (`with recursive`) that cut `page`, newest first, after the first task that takes
 * the answer past its 8 MiB. `kept` has the columns of `page`. Sizes are measured block by block, so that
 * Postgres does not decompress a thousand results to answer eight of them.
 */
export function cutToBytes(parts: ViewParts): string {
  return `numbered as materialized (
      select page.*, (row_number() over (order by id desc) - 1) / ${blockSize} as block from page
    ), full_blocks (block, bytes) as (
      select -1::bigint, 0::bigint
      union all
      select block + 1, bytes + (
        select coalesce(sum(${bytesOf(parts)}), 0)::bigint
        from numbered task where task.block = full_blocks.block + 1
      )
      from full_blocks
      where bytes < ${bounds.answerBytes} and block < (select max(block) from numbered)
    ), measured as (
      select task.*, sum(${bytesOf(parts)}) over (
        order by id desc rows between unbounded preceding and 1 preceding
      ) as bytes_before
      from numbered task where block <= (select max(block) from full_blocks)
    ), kept as (
      select * from measured where coalesce(bytes_before, 0) < ${bounds.answerBytes}
    )`;
}

export interface ViewRow extends ToldColumns {
  readonly id: TaskId;
  readonly task_type: string;
  readonly queue: string;
  readonly capabilities: readonly string[];
  readonly priority: number;
  readonly retry_count: number;
  readonly max_retries: number;
  readonly run_at: Date | null;
  readonly eligible_at: Date;
  readonly progress_percent: number | null;
  readonly progress_message: string | null;
  readonly timeout_seconds: number;
  readonly dispatch_deadline_seconds: number | null;
  readonly workflow_id: string | null;
  readonly idempotency_key: string | null;
  readonly cost: Cost | null;
  readonly user_id: string | null;
  readonly tags: readonly string[];
  readonly trace_id: string | null;
  readonly result: JsonValue;
  readonly usage: Cost | null;
  readonly deferrals: number;
  readonly returns: number;
  /** Null: it ended so long ago that its parameters are no longer kept. */
  readonly parameters: JsonObject | null;
  readonly queue_known: boolean;
  readonly low_to_medium_ms: number | null;
  readonly low_to_high_ms: number | null;
  readonly medium_to_high_ms: number | null;
}

export function toTaskView(row: ViewRow, now: Date, withHistory: boolean): TaskView {
  return {
    ...toListedTask(row, now, []),
    parameters: row.parameters ?? {},
    result: row.result,
    ...(withHistory && { history: tellHistory(row) }),
  };
}

export function toListedTask(row: ViewRow, now: Date, include: readonly ListInclude[]): ListedTask {
  const { progress_percent: percent, progress_message: message } = row;
  const { queuedAt, assignedAt, startedAt, workerId } = lastPassage(row);
  return {
    taskId: row.id,
    taskType: row.task_type,
    queue: row.queue,
    priority: priorityOf(row.priority),
    effectivePriority: effectivePriorityOf(row, now),
    status: row.status,
    ...(include.includes('parameters') && { parameters: row.parameters ?? {} }),
    requiredCapabilities: row.capabilities,
    retryCount: row.retry_count,
    maxRetries: row.max_retries,
    attempt: row.attempt,
    createdAt: row.created_at,
    runAt: row.run_at,
    eligibleAt: row.eligible_at,
    queuedAt,
    assignedAt,
    startedAt,
    completedAt: row.ended_at,
    assignedWorkerId: workerId,
    progress: percent === null ? null : { percent, message },
    ...(include.includes('result') && { result: row.result }),
    error: row.error === null ? null : attemptErrorFromJson(row.error),
    timeoutSeconds: row.timeout_seconds,
    dispatchDeadline: dispatchDeadlineOf(row),
    workflowId: row.workflow_id,
    idempotencyKey: row.idempotency_key,
    cost: row.cost,
    usage: row.usage,
    userId: row.user_id,
    tags: row.tags,
    traceId: traceIdFromText(row.trace_id, row.id),
    currentStateDurationSeconds: secondsBetween(stateSince(row), now),
    executionDurationSeconds: executionSeconds(row, now),
    deferrals: row.deferrals,
    returns: row.returns,
  };
}

/** As it was when it was taken or ended, and as it is while it waits. */
function effectivePriorityOf(row: ViewRow, now: Date): TaskView['effectivePriority'] {
  const until = row.assigned_at ?? row.ended_at ?? now;
  const ageMs = Math.max(0, until.getTime() - row.eligible_at.getTime());
  return effectivePriority(priorityOf(row.priority), ageMs, ageingOf(row));
}

/** A queue's row is written a moment after its first task. */
function ageingOf(row: ViewRow): Ageing {
  if (!row.queue_known) return defaultAgeing;
  return {
    lowToMediumMs: row.low_to_medium_ms,
    lowToHighMs: row.low_to_high_ms,
    mediumToHighMs: row.medium_to_high_ms,
  };
}

/** Not from expires_at, which is infinity once the deadline was met. */
function dispatchDeadlineOf(row: ViewRow): Date | null {
  const seconds = row.dispatch_deadline_seconds;
  return seconds === null ? null : new Date(row.eligible_at.getTime() + seconds * 1000);
}

function executionSeconds(row: ViewRow, now: Date): number | null {
  const execution = lastExecution(row);
  return execution === null ? null : secondsBetween(execution.startedAt, execution.endedAt ?? now);
}

function secondsBetween(from: Date, to: Date): number {
  return Math.max(0, to.getTime() - from.getTime()) / 1000;
}
