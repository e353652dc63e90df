import type { TaskId } from '../domain/ids.js';
import { rankOf } from '../domain/priority.js';
import type { TaskState } from '../domain/task-state.js';
import type { ReplayRequest } from '../protocol/tasks-api.js';
import { countAdmitted } from './admission.js';
import { changeMembers } from './change-members.js';
import type { Database, Instant, Queryable } from './database.js';
import { windowOf, type LineWindow, type WindowRow } from './task-row.js';

export interface ReplayedRow {
  readonly taskId: TaskId;
  readonly window: LineWindow;
  readonly from: TaskState;
  readonly trace: string | null;
}

interface RevivedRow extends WindowRow {
  id: TaskId;
  was: TaskState;
  trace_id: string | null;
}

/**
 * Brings ended tasks back in line, as if they were submitted now; a completed one never. `dueAt` is
 * when each of them may run: at once, when it is absent.
 */
export function replayTasks(
  db: Database,
  taskIds: readonly TaskId[],
  request: ReplayRequest,
  now: Instant,
  dueAt: readonly Date[] | null = null,
): Promise<ReplayedRow[]> {
  const { newPriority, resetRetryCount = true } = request;
  const parameters = [
    taskIds,
    newPriority === undefined ? null : rankOf(newPriority),
    resetRetryCount,
    now,
    dueAt,
  ];
  const replay = async (connection: Queryable, counts: boolean) => {
    const written = [...parameters, counts];
    const revived = await connection.query<RevivedRow>(reviveStatement, written);
    if (revived.length === taskIds.length) return revived.map(toReplayed);
    const restored = await connection.query<RevivedRow>(restoreStatement, written);
    return [...revived, ...restored].map(toReplayed);
  };
  return changeMembers(db, taskIds, now, replay, (tx, rows) =>
    countAdmitted(
      tx,
      rows.map(({ window }) => window.lane.queue),
      null,
    ),
  );
}

const wantedTasks = `
  (select coalesce($4::timestamptz, now()) as now) as clock,
  unnest($1::uuid[], $5::timestamptz[]) as wanted (id, due_at)`;

// How it ended and that it was brought back: an end without an attempt stands nowhere else.
const withMarks = `ended.past_attempts || array[
  json_build_object(
    'queued_at', ended.queued_at, 'ended_at', ended.ended_at, 'became', ended.status
  ),
  json_build_object('ended_at', clock.now, 'became', 'pending', 'reason', 'replayed')
]`;

const newWait = `case when ended.workflow_id is null then 'time' else 'workflow' end`;

const newRunAt = `case
  when ended.workflow_id is null then coalesce(wanted.due_at, clock.now)
  else wanted.due_at
end`;

// A member that waits for its turn can't be late: its deadline runs from its release.
const newExpiry = `case
  when ended.workflow_id is not null and ended.dispatch_deadline_seconds is not null then 'infinity'
  else greatest(clock.now, wanted.due_at) + ended.dispatch_deadline_seconds * interval '1 second'
end`;

// A person asked for it: it is counted, and no ceiling is in its way.
const countReplayed = `
  counted as (
    select case when $6::boolean then sluice.count_admitted(array_agg(queue), null, null, null) end
    from replayed
  )
  select replayed.* from replayed cross join counted`;

// The counts of going back at no cost start anew with the retries: a task that spent them would
// otherwise be a dead letter again at once.
const reviveStatement = `
  with replayed as (
    update sluice.tasks task set
      status = 'pending',
      waits_for = ${newWait},
      priority = coalesce($2::smallint, task.priority),
      eligible_at = greatest(clock.now, wanted.due_at),
      expires_at = ${newExpiry},
      run_at = ${newRunAt},
      queued_at = null,
      ended_at = null,
      error = null,
      progress_percent = null,
      progress_message = null,
      retry_count = case when $3::boolean then 0 else task.retry_count end,
      deferrals = case when $3::boolean then 0 else task.deferrals end,
      returns = case when $3::boolean then 0 else task.returns end,
      runs_before_replay = task.attempt - case when $3::boolean then 0 else task.returns end,
      past_attempts = ${withMarks}
    from ${wantedTasks},
      lateral (select ctid as place, * from sluice.tasks where id = wanted.id offset 0) as ended
    where task.ctid = ended.place and task.status in ('dead_letter', 'failed')
    returning task.id, task.queue, task.task_type, task.capabilities, task.priority,
      task.trace_id, ended.status as was
  ), noted as (
    insert into sluice.dead_letter_changes (task_id)
    select id from replayed where was = 'dead_letter'
  ), ${countReplayed}`;

// Its parameters may be gone already: inputs are kept only as long as something living is as old.
const restoreStatement = `
  with ended as (
    delete from sluice.task_history h
    where h.id = any($1::uuid[]) and h.status = 'cancelled'
      and exists (select from sluice.task_inputs i where i.task_id = h.id)
    returning *
  ), replayed as (
    insert into sluice.tasks
      (id, seq, queue, task_type, capabilities, priority, status, waits_for, created_at, eligible_at,
       dispatch_deadline_seconds, expires_at, run_at, timeout_seconds, max_retries, retry_count,
       attempt, deferrals, returns, runs_before_replay, workflow_id, halts_workflow, idempotency_key,
       cost, user_id, tags, trace_id, owner, past_attempts)
    select ended.id, seq, queue, task_type, capabilities, coalesce($2::smallint, priority), 'pending',
      ${newWait}, created_at, greatest(clock.now, wanted.due_at), dispatch_deadline_seconds,
      ${newExpiry}, ${newRunAt}, timeout_seconds, max_retries,
      case when $3::boolean then 0 else retry_count end, attempt,
      case when $3::boolean then 0 else deferrals end, case when $3::boolean then 0 else returns end,
      attempt - case when $3::boolean then 0 else returns end,
      workflow_id, halts_workflow, idempotency_key, cost, user_id, tags, trace_id, owner, ${withMarks}
    from ended, ${wantedTasks}
    where wanted.id = ended.id
    returning id, queue, task_type, capabilities, priority, trace_id, 'cancelled' as was
  ), ${countReplayed}`;

function toReplayed(row: RevivedRow): ReplayedRow {
  return { taskId: row.id, window: windowOf(row), from: row.was, trace: row.trace_id };
}
