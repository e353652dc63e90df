import type { TaskId } from '../domain/ids.js';
import { rankOf, type Priority } from '../domain/priority.js';
import { hasEnded, type TaskState } from '../domain/task-state.js';
import type { Instant, Queryable } from './database.js';
import { windowOf, type LineWindow, type WindowRow } from './task-row.js';

export type ChangeOutcome =
  | { readonly kind: 'changed'; readonly window: LineWindow; readonly wasQueued: boolean }
  | { readonly kind: 'started' | 'ended' | 'missing' };

interface ChangeRow extends WindowRow {
  was: TaskState;
  changed: boolean;
}

/**
 * A queued task goes back to pending, since its place in the ready queue is no longer right.
 * A run_at that has passed keeps the age the task has: it is no way to the front of the line.
 */
export async function changeTask(
  db: Queryable,
  taskId: TaskId,
  change: { readonly priority?: Priority; readonly runAt?: Date },
  now: Instant,
): Promise<ChangeOutcome> {
  const [row] = await db.query<ChangeRow>(
    `with found as (
       select id, status, waits_for, eligible_at,
         coalesce($3::timestamptz, run_at) as run_at,
         coalesce($4::timestamptz, now()) as instant
       from sluice.tasks where id = $1::uuid
       for update
     ), timed as (
       select *, case
         when $3::timestamptz is null then eligible_at
         when $3::timestamptz > instant then $3::timestamptz
         else least(eligible_at, instant)
       end as new_eligible_at
       from found
     ), changed as (
       update sluice.tasks t set
         priority = coalesce($2::smallint, t.priority),
         status = 'pending',
         waits_for = coalesce(timed.waits_for, 'time'),
         run_at = case
           when timed.waits_for = 'workflow' then timed.run_at
           else coalesce(timed.run_at, timed.instant)
         end,
         queued_at = null,
         eligible_at = timed.new_eligible_at,
         expires_at = case
           when timed.waits_for = 'workflow' then t.expires_at
           else timed.new_eligible_at + t.dispatch_deadline_seconds * interval '1 second'
         end
       from timed
       where t.id = timed.id and t.status in ('pending', 'queued')
       returning t.id, t.queue, t.task_type, t.capabilities, t.priority
     )
     select found.status as was, changed.id is not null as changed, changed.queue,
       changed.task_type, changed.capabilities, changed.priority
     from found left join changed on changed.id = found.id`,
    [
      taskId,
      change.priority === undefined ? null : rankOf(change.priority),
      change.runAt ?? null,
      now,
    ],
  );
  if (row === undefined) return { kind: (await isInHistory(db, taskId)) ? 'ended' : 'missing' };
  if (!row.changed) return { kind: hasEnded(row.was) ? 'ended' : 'started' };
  return { kind: 'changed', window: windowOf(row), wasQueued: row.was === 'queued' };
}

async function isInHistory(db: Queryable, taskId: TaskId): Promise<boolean> {
  const rows = await db.query('select from sluice.task_history where id = $1::uuid', [taskId]);
  return rows.length > 0;
}
