import type { TaskId } from '../domain/ids.js';
import { rankOf } from '../domain/priority.js';
import type { TaskState } from '../domain/task-state.js';
import type { ReplayRequest } from '../protocol/api.js';
import { changeMembers } from './change-members.js';
import type { Database, Instant } from './database.js';
import { windowOf, type BacklogWindow, type WindowRow } from './task-row.js';

export interface ReplayedRow {
  readonly taskId: TaskId;
  readonly window: BacklogWindow;
  readonly from: TaskState;
}

interface RevivedRow extends WindowRow {
  id: TaskId;
  was: TaskState;
}

/** Brings ended tasks back in line, as if they were submitted now; a completed one never. */
export function replayTasks(
  db: Database,
  taskIds: readonly TaskId[],
  request: ReplayRequest,
  now: Instant,
): Promise<ReplayedRow[]> {
  const { newPriority, resetRetryCount = true } = request;
  const parameters = [
    taskIds,
    newPriority === undefined ? null : rankOf(newPriority),
    resetRetryCount,
    now,
  ];
  return changeMembers(db, taskIds, now, async (connection) => {
    const revived = await connection.query<RevivedRow>(reviveStatement, parameters);
    const restored = await connection.query<RevivedRow>(restoreStatement, parameters);
    return [...revived, ...restored].map(toReplayed);
  });
}

// How it ended and that it was brought back: an end without an attempt stands nowhere else.
const withMarks = `past_attempts || array[
  json_build_object('queued_at', queued_at, 'ended_at', ended_at, 'became', status),
  json_build_object(
    'ended_at', coalesce($4::timestamptz, now()), 'became', 'pending', 'reason', 'replayed'
  )
]`;

// A member that waits for its turn can't be late: its deadline runs from its release.
const newExpiry = `case
  when workflow_id is not null and dispatch_deadline_seconds is not null then 'infinity'
  else coalesce($4::timestamptz, now()) + dispatch_deadline_seconds * interval '1 second'
end`;

// The counts of going back at no cost start anew with the retries: a task that spent them would
// otherwise be a dead letter again at once.
const reviveStatement = `
  with failed as (
    select id from sluice.tasks where id = any($1::uuid[]) and status = 'failed'
  )
  update sluice.tasks set
    status = 'pending',
    waits_for = case when workflow_id is null then 'room' else 'workflow' end,
    priority = coalesce($2::smallint, priority),
    eligible_at = coalesce($4::timestamptz, now()),
    expires_at = ${newExpiry},
    run_at = null,
    queued_at = null,
    ended_at = null,
    error = null,
    progress_percent = null,
    progress_message = null,
    retry_count = case when $3::boolean then 0 else retry_count end,
    deferrals = case when $3::boolean then 0 else deferrals end,
    returns = case when $3::boolean then 0 else returns end,
    past_attempts = ${withMarks}
  where id = any($1::uuid[]) and status in ('dead_letter', 'failed')
  returning id, queue, task_type, capabilities, priority,
    case when id = any(array(select id from failed)) then 'failed' else 'dead_letter' end as was`;

// Its parameters may be gone already: inputs are kept only as long as something living is as old.
const restoreStatement = `
  with ended as (
    delete from sluice.task_history h
    where h.id = any($1::uuid[]) and h.status = 'cancelled'
      and exists (select from sluice.task_inputs i where i.task_id = h.id)
    returning *
  )
  insert into sluice.tasks
    (id, seq, queue, task_type, capabilities, priority, status, waits_for, created_at, eligible_at,
     dispatch_deadline_seconds, expires_at, timeout_seconds, max_retries, retry_count, attempt,
     deferrals, returns, workflow_id, halts_workflow, idempotency_key, cost, user_id, tags,
     trace_id, past_attempts)
  select id, seq, queue, task_type, capabilities, coalesce($2::smallint, priority), 'pending',
    case when workflow_id is null then 'room' else 'workflow' end, created_at,
    coalesce($4::timestamptz, now()), dispatch_deadline_seconds, ${newExpiry},
    timeout_seconds, max_retries, case when $3::boolean then 0 else retry_count end, attempt,
    case when $3::boolean then 0 else deferrals end, case when $3::boolean then 0 else returns end,
    workflow_id, halts_workflow, idempotency_key, cost, user_id, tags, trace_id, ${withMarks}
  from ended
  returning id, queue, task_type, capabilities, priority, 'cancelled' as was`;

function toReplayed(row: RevivedRow): ReplayedRow {
  return { taskId: row.id, window: windowOf(row), from: row.was };
}
