import type { Lease, TaskId, WorkerId } from '../domain/ids.js';
import type { Lane } from '../domain/lane.js';
import { priorityOf } from '../domain/priority.js';
import type { Cost } from '../domain/queue-settings.js';
import type { Held } from '../protocol/api.js';
import { heldColumns, jsonColumn, realOrNull, sparseColumn } from './columns.js';
import { prepared, type Database, type Instant, type Queryable } from './database.js';
import { finishFenced, type FinishedRow } from './finish-members.js';
import { costOf } from './task-row.js';

export interface Completion extends Held {
  readonly resultJson: string | null;
  readonly usageJson: string | null;
  readonly executionSeconds: number | null;
}

/**
 * From the living to history, fenced by the lease. Members of workflows are left out unless asked
 * for ($7): they need the lock of their workflow first, and the others must not pay for it; they
 * are counted at the end of their transaction. The count comes last, after the history: others
 * wait for its row until this one commits.
 */
const completeTasksSql = prepared(`
with done as (
  delete from sluice.tasks task
  using
    rows from (
      unnest($1::uuid[], $2::uuid[], $4::text[], $5::real[]), json_array_elements($3::json)
    ) as report (id, lease, usage, execution_seconds, result),
    lateral (select ctid as place from sluice.tasks where id = report.id offset 0) as found
  where task.ctid = found.place and task.lease = report.lease
    and (task.workflow_id is null or $7)
  returning
    task.*, report.result, report.usage, report.execution_seconds,
    coalesce($6::timestamptz, now()) as now
), kept as (
  insert into sluice.task_history (
    id, seq, queue, task_type, capabilities, priority, status, created_at, eligible_at, run_at,
    queued_at, assigned_at, started_at, ended_at, dispatch_deadline_seconds, timeout_seconds,
    max_retries, retry_count, attempt, deferrals, returns, lease, worker_id, workflow_id,
    halts_workflow, idempotency_key, cost, user_id, tags, trace_id, progress_percent,
    progress_message, result, usage, execution_seconds, past_attempts
  )
  select
    id, seq, queue, task_type, capabilities, priority, 'completed', created_at, eligible_at, run_at,
    queued_at, assigned_at, started_at, now, dispatch_deadline_seconds, timeout_seconds,
    max_retries, retry_count, attempt, deferrals, returns, lease, worker_id, workflow_id,
    halts_workflow, idempotency_key, cost, user_id, tags, trace_id, progress_percent,
    progress_message, result, usage::json, execution_seconds, past_attempts
  from done
  returning 1
), counted as (
  select case when not $7 then sluice.count_ended(array_agg(queue)) end
  from done where (select count(*) from kept) > 0
)
select
  id, lease, queue, task_type, capabilities, priority, cost, worker_id, workflow_id, attempt, status,
  date_part('epoch', now - coalesce(started_at, assigned_at)) * 1000 as run_ms
from done cross join counted`);

interface Row {
  readonly id: TaskId;
  readonly lease: Lease;
  readonly queue: string;
  readonly task_type: string;
  readonly capabilities: readonly string[];
  readonly priority: number;
  readonly cost: Cost | null;
  readonly worker_id: WorkerId;
  readonly workflow_id: string | null;
  readonly attempt: number;
  readonly status: 'assigned' | 'executing';
  readonly run_ms: number;
}

export interface CompletedRow extends FinishedRow {
  readonly lane: Lane;
}

/** Those that don't come back have lost their lease. */
export function completeTasks(
  db: Database,
  completions: readonly Completion[],
  now: Instant,
): Promise<CompletedRow[]> {
  return finishFenced(db, completions, now, complete, () => true);
}

async function complete(
  db: Queryable,
  completions: readonly Completion[],
  now: Instant,
  withMembers: boolean,
): Promise<CompletedRow[]> {
  const rows = await db.query<Row>(completeTasksSql, [
    ...heldColumns(completions),
    jsonColumn(completions, (completion) => completion.resultJson),
    sparseColumn(completions, (completion) => completion.usageJson),
    sparseColumn(completions, ({ executionSeconds }) => realOrNull(executionSeconds)),
    now,
    withMembers,
  ]);
  return rows.map(completedOf);
}

function completedOf(row: Row): CompletedRow {
  return {
    taskId: row.id,
    lease: row.lease,
    queue: row.queue,
    taskType: row.task_type,
    lane: { queue: row.queue, taskType: row.task_type, capabilities: row.capabilities },
    priority: priorityOf(row.priority),
    cost: costOf(row.cost),
    workerId: row.worker_id,
    workflowId: row.workflow_id,
    attempt: row.attempt,
    from: row.status,
    runMs: row.run_ms,
    released: false,
  };
}
