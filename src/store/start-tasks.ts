import type { TaskId } from '../domain/ids.js';
import type { Held } from '../protocol/api.js';
import { column, heldColumns, sparseColumn } from './columns.js';
import type { Instant, Queryable } from './database.js';

/** A start that is said again keeps its first instant. */
export const startTasksSql = `
update sluice.tasks task
set
  status = 'executing',
  started_at = coalesce(task.started_at, clock.now),
  lapses_at = case
    when task.status = 'executing' then task.lapses_at
    else clock.now + task.timeout_seconds * interval '1 second'
  end
from
  unnest($1::uuid[], $2::uuid[]) as held (id, lease),
  (select coalesce($3::timestamptz, now()) as now) as clock
where task.id = held.id and task.lease = held.lease
returning task.id`;

/** Those that don't come back have lost their lease. */
export async function startTasks(
  db: Queryable,
  held: readonly Held[],
  now: Instant,
): Promise<TaskId[]> {
  const rows = await db.query<{ id: TaskId }>(startTasksSql, [...heldColumns(held), now]);
  return rows.map((row) => row.id);
}

export interface Progress extends Held {
  readonly percent: number;
  readonly message: string | null;
}

export const recordProgressSql = `
update sluice.tasks task
set progress_percent = report.percent, progress_message = report.message
from unnest($1::uuid[], $2::uuid[], $3::real[], $4::text[]) as report (id, lease, percent, message)
where task.id = report.id and task.lease = report.lease
returning task.id`;

/** Of several reports of one task the last counts. */
export async function recordProgress(db: Queryable, items: readonly Progress[]): Promise<TaskId[]> {
  const latest = [...new Map(items.map((item) => [`${item.taskId} ${item.lease}`, item])).values()];
  const rows = await db.query<{ id: TaskId }>(recordProgressSql, [
    ...heldColumns(latest),
    column(latest, (item) => item.percent),
    sparseColumn(latest, (item) => item.message),
  ]);
  return rows.map((row) => row.id);
}
