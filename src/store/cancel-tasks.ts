import type { AttemptError } from '../domain/attempt-error.js';
import type { Lease, TaskId, WorkerId } from '../domain/ids.js';
import { priorityOf, type Priority } from '../domain/priority.js';
import type { Cost } from '../domain/queue-settings.js';
import { hasEnded, type TaskState } from '../domain/task-state.js';
import { countEnded } from './admission.js';
import { changeMembers } from './change-members.js';
import type { Database, Instant, Queryable } from './database.js';
import { withPartitions } from './partitions.js';
import { attemptErrorToJson, costOf } from './task-row.js';

export interface CancelledRow {
  readonly taskId: TaskId;
  readonly queue: string;
  readonly taskType: string;
  readonly priority: Priority;
  readonly from: TaskState;
  readonly lease: Lease | null;
  /** Whoever held it: its lease is gone, and it must be told. */
  readonly workerId: WorkerId | null;
  readonly workflowId: string | null;
  readonly attempt: number;
  readonly trace: string | null;
  readonly cost: Cost;
}

interface GoneRow {
  id: TaskId;
  queue: string;
  task_type: string;
  priority: number;
  status: TaskState;
  lease: Lease | null;
  worker_id: WorkerId | null;
  workflow_id: string | null;
  attempt: number;
  trace_id: string | null;
  cost: Cost | null;
}

/**
 * The living go to history, and their leases with them: no later write can match. What has ended
 * is left alone, but for a dead letter that halts its workflow: that one gives way.
 */
export function cancelTasks(
  db: Database,
  taskIds: readonly TaskId[],
  now: Instant,
): Promise<CancelledRow[]> {
  return withPartitions(db, { now }, () =>
    changeMembers(
      db,
      taskIds,
      now,
      (connection, counts) => cancel(connection, taskIds, null, counts, now),
      countCancelled,
    ),
  );
}

/**
 * For whoever holds the workflows already in a transaction under `withPartitions`, and calls
 * `countCancelled` at the end. `why`: what a task
 * that nobody asked to cancel says.
 */
export function cancelWithin(
  tx: Queryable,
  taskIds: readonly TaskId[],
  why: AttemptError,
  now: Instant,
): Promise<CancelledRow[]> {
  return cancel(tx, taskIds, why, false, now);
}

/** A dead letter that gave way had ended before. */
export async function countCancelled(tx: Queryable, rows: readonly CancelledRow[]): Promise<void> {
  const queues = rows.filter(({ from }) => !hasEnded(from)).map(({ queue }) => queue);
  await countEnded(tx, queues);
}

async function cancel(
  connection: Queryable,
  taskIds: readonly TaskId[],
  why: AttemptError | null,
  counts: boolean,
  now: Instant,
): Promise<CancelledRow[]> {
  const error = why === null ? null : JSON.stringify(attemptErrorToJson(why));
  const rows = await connection.query<GoneRow>(cancelStatement, [
    taskIds,
    now,
    error,
    why?.message ?? null,
    counts,
  ]);
  return rows.map(toCancelled);
}

// The attempt is kept without its lease: a report that comes later finds nothing it could repeat.
// A workflow is found by its place in the table, which nobody can change: its row is locked. A join
// by its id may become a scan of all workflows for each task.
const cancelStatement = `
  with gone as (
    delete from sluice.tasks
    where id = any($1::uuid[])
      and (
        status in ('pending', 'queued', 'assigned', 'executing')
        or (workflow_id is not null and halts_workflow)
      )
    returning *, coalesce($2::timestamptz, now()) as instant
  ), kept_place as (
    update sluice.workflows w set
      held_task = gone.id, held_lease = gone.lease, held_worker_id = gone.worker_id,
      held_since = gone.assigned_at, held_until = gone.lapses_at
    from gone, lateral (
      select ctid as at from sluice.workflows where id = gone.workflow_id offset 0
    ) locked
    where w.ctid = locked.at and gone.lease is not null
  ), kept as (
    insert into sluice.task_history
      (id, seq, queue, task_type, capabilities, priority, status, created_at, eligible_at, run_at,
       queued_at, ended_at, dispatch_deadline_seconds, timeout_seconds, max_retries, retry_count,
       attempt, deferrals, returns, workflow_id, halts_workflow, idempotency_key, cost, user_id,
       tags, trace_id, owner, progress_percent, progress_message, error, past_attempts)
    select id, seq, queue, task_type, capabilities, priority, 'cancelled', created_at, eligible_at,
      run_at, case when status = 'queued' then queued_at end, instant, dispatch_deadline_seconds,
      timeout_seconds, max_retries, retry_count, attempt, deferrals, returns, workflow_id,
      halts_workflow, idempotency_key, cost, user_id, tags, trace_id, owner, progress_percent,
      progress_message, coalesce($3::json, error),
      case
        when lease is not null then array_append(past_attempts, json_build_object(
          'attempt', attempt, 'worker_id', worker_id, 'queued_at', queued_at,
          'assigned_at', assigned_at, 'started_at', started_at, 'ended_at', instant,
          'outcome', 'cancelled', 'became', 'cancelled'
        ))
        when status = 'failed' then array_append(past_attempts, json_build_object(
          'queued_at', queued_at, 'ended_at', ended_at, 'became', 'failed'
        ))
        when $4::text is not null then array_append(past_attempts, json_build_object(
          'queued_at', queued_at, 'ended_at', instant, 'became', 'cancelled', 'reason', $4::text
        ))
        else past_attempts
      end
    from gone
    returning 1
  ), counted as (
    select case when $5::boolean then
      sluice.count_ended(array_agg(queue) filter (where ended_at is null))
    end
    from gone where (select count(*) from kept) > 0
  ), noted as (
    insert into sluice.dead_letter_changes (task_id) select id from gone where status = 'dead_letter'
  )
  select id, queue, task_type, priority, status, lease, worker_id, workflow_id, attempt, trace_id,
    cost
  from gone cross join counted`;

function toCancelled(row: GoneRow): CancelledRow {
  return {
    taskId: row.id,
    queue: row.queue,
    taskType: row.task_type,
    priority: priorityOf(row.priority),
    from: row.status,
    lease: row.lease,
    workerId: row.worker_id,
    workflowId: row.workflow_id,
    attempt: row.attempt,
    trace: row.trace_id,
    cost: costOf(row.cost),
  };
}
