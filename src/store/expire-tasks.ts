import { attemptErrorCodes } from '../domain/attempt-error.js';
import type { TaskId } from '../domain/ids.js';
import { priorityOf, type Priority } from '../domain/priority.js';
import { countEnded } from './admission.js';
import { changeMembers } from './change-members.js';
import type { Database, Instant, Queryable } from './database.js';
import { attemptErrorToJson } from './task-row.js';

export interface ExpiredRow {
  readonly taskId: TaskId;
  readonly queue: string;
  readonly taskType: string;
  readonly priority: Priority;
  readonly trace: string | null;
  readonly from: 'pending' | 'queued';
}

const errorJson = JSON.stringify(
  attemptErrorToJson({
    code: attemptErrorCodes.capacity,
    message: 'No worker took it before its dispatch deadline.',
    retriable: true,
  }),
);

/**
 * Past their dispatch deadline without having run since they were submitted or replayed: failed. Those
 * that ran have met it, however long they wait for their next attempt.
 */
export async function expireTasks(
  db: Database,
  limit: number,
  now: Instant,
): Promise<ExpiredRow[]> {
  // Index: tasks_expiring.
  const due = await db.query<{ id: TaskId }>(
    `select id from sluice.tasks
     where expires_at <= coalesce($2::timestamptz, now()) and status in ('pending', 'queued')
     order by expires_at limit $1`,
    [limit, now],
  );
  if (due.length === 0) return [];
  const taskIds = due.map((row) => row.id);
  const expire = async (connection: Queryable, counts: boolean) => {
    const rows = await connection.query<{
      id: TaskId;
      queue: string;
      task_type: string;
      priority: number;
      trace_id: string | null;
      was: 'pending' | 'queued';
    }>(expireStatement, [taskIds, errorJson, now, counts]);
    return rows.map((row) => ({
      taskId: row.id,
      queue: row.queue,
      taskType: row.task_type,
      priority: priorityOf(row.priority),
      trace: row.trace_id,
      from: row.was,
    }));
  };
  return changeMembers(db, taskIds, now, expire, (tx, rows) =>
    countEnded(
      tx,
      rows.map(({ queue }) => queue),
    ),
  );
}

// A task that goes back after a run leaves the index, or every sweep would meet it first.
// By arrays and not by joins: those become a scan of everything when the statistics are old.
const expireStatement = `
  with due as (
    select id, attempt - returns > runs_before_replay as has_run from sluice.tasks
    where id = any($1::uuid[]) and status in ('pending', 'queued')
      and expires_at <= coalesce($3::timestamptz, now())
    for update skip locked
  ), met as (
    update sluice.tasks set expires_at = 'infinity'
    where id = any(array(select id from due where has_run))
  ), expired as (
    update sluice.tasks set
      status = 'failed',
      waits_for = null,
      queued_at = case when status = 'queued' then queued_at end,
      ended_at = coalesce($3::timestamptz, now()),
      error = $2::json
    where id = any(array(select id from due where not has_run))
    returning id, queue, task_type, priority, trace_id,
      case when queued_at is null then 'pending' else 'queued' end as was
  ), counted as (
    select case when $4::boolean then sluice.count_ended(array_agg(queue)) end from expired
  )
  select expired.* from expired cross join counted`;
