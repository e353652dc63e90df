import type { TaskId } from '../domain/ids.js';
import { rankOf, type Priority } from '../domain/priority.js';
import { hasEnded, type TaskState } from '../domain/task-state.js';
import type { Instant, Queryable } from './database.js';
import { windowOf, type LineWindow, type WindowRow } from './task-row.js';

export interface ChangedTask {
  readonly taskId: TaskId;
  readonly window: LineWindow;
  readonly wasQueued: boolean;
  readonly trace: string | null;
}

export type ChangeOutcome =
  | { readonly kind: 'changed'; readonly changed: ChangedTask }
  | { readonly kind: 'started' | 'ended' | 'missing' };

export interface Change {
  readonly priority?: Priority;
  readonly runAt?: Date;
}

interface FoundRow extends WindowRow {
  id: TaskId;
  was: TaskState;
  changed: boolean;
  trace_id: string | null;
}

export async function changeTask(
  db: Queryable,
  taskId: TaskId,
  change: Change,
  now: Instant,
): Promise<ChangeOutcome> {
  const [row] = await findAndChange(db, [taskId], change, now);
  if (row === undefined) return { kind: (await isInHistory(db, taskId)) ? 'ended' : 'missing' };
  if (!row.changed) return { kind: hasEnded(row.was) ? 'ended' : 'started' };
  return { kind: 'changed', changed: toChanged(row) };
}

/** Those of them that have not started; the others stay as they are. */
export async function changeTasks(
  db: Queryable,
  taskIds: readonly TaskId[],
  change: Change,
  now: Instant,
): Promise<readonly ChangedTask[]> {
  const rows = await findAndChange(db, taskIds, change, now);
  return rows.filter(({ changed }) => changed).map(toChanged);
}

function toChanged(row: FoundRow): ChangedTask {
  const { id: taskId, was, trace_id: trace } = row;
  return { taskId, window: windowOf(row), wasQueued: was === 'queued', trace };
}

/**
 * A queued task goes back to pending, since its place in the ready queue is no longer right.
 * A run_at that has passed keeps the age the task has: it is no way to the front of the line.
 */
function findAndChange(
  db: Queryable,
  taskIds: readonly TaskId[],
  change: Change,
  now: Instant,
): Promise<FoundRow[]> {
  return db.query<FoundRow>(
    `with found as (
       select id, status, waits_for, eligible_at,
         coalesce($3::timestamptz, run_at) as run_at,
         coalesce($4::timestamptz, now()) as instant
       from sluice.tasks where id = any($1::uuid[])
       order by id
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
       returning t.id, t.queue, t.task_type, t.capabilities, t.priority, t.trace_id
     )
     select found.id, found.status as was, changed.id is not null as changed, changed.queue,
       changed.task_type, changed.capabilities, changed.priority, changed.trace_id
     from found left join changed on changed.id = found.id`,
    [
      taskIds,
      change.priority === undefined ? null : rankOf(change.priority),
      change.runAt ?? null,
      now,
    ],
  );
}

async function isInHistory(db: Queryable, taskId: TaskId): Promise<boolean> {
  const rows = await db.query('select from sluice.task_history where id = $1::uuid', [taskId]);
  return rows.length > 0;
}
