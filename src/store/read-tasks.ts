import type { TaskId } from '../domain/ids.js';
import type { TaskState, WaitsFor } from '../domain/task-state.js';
import type { TaskView } from '../protocol/tasks-api.js';
import type { Instant, Queryable } from './database.js';
import { historyColumns, livingColumns, toTaskView, viewColumns, viewJoins } from './task-view.js';
import type { ViewRow } from './task-view.js';

/** Living or in history: one statement, so that a task that ends meanwhile is found in one of them. */
export async function findTask(
  db: Queryable,
  taskId: TaskId,
  withHistory: boolean,
  now: Instant,
): Promise<TaskView | null> {
  const [row] = await db.query<ViewRow & { now: Date }>(
    `select ${viewColumns(['parameters', 'result', ...(withHistory ? (['history'] as const) : [])])},
       coalesce($2::timestamptz, now()) as now
     from (
       select ${livingColumns} from sluice.tasks where id = $1::uuid
       union all
       select ${historyColumns} from sluice.task_history where id = $1::uuid
     ) task ${viewJoins}`,
    [taskId, now],
  );
  return row === undefined ? null : toTaskView(row, row.now, withHistory);
}

/** Ids that never were, or ended too long ago, are not in the answer. */
export async function findStates(
  db: Queryable,
  taskIds: readonly TaskId[],
): Promise<ReadonlyMap<TaskId, TaskState>> {
  const rows = await db.query<{ id: TaskId; status: TaskState }>(
    `select id, status from sluice.tasks where id = any($1::uuid[])
     union all
     select id, status from sluice.task_history where id = any($1::uuid[])`,
    [taskIds],
  );
  return new Map(rows.map((row) => [row.id, row.status]));
}

/** What never changes of a task and decides who reaches it. Null: there is no such task. */
export async function findPlace(
  db: Queryable,
  taskId: TaskId,
): Promise<{ readonly queue: string; readonly owner: string | null } | null> {
  const [row] = await db.query<{ queue: string; owner: string | null }>(
    `select queue, owner from sluice.tasks where id = $1::uuid
     union all
     select queue, owner from sluice.task_history where id = $1::uuid`,
    [taskId],
  );
  return row ?? null;
}

/** Null unless it is pending. */
export async function findWaitsFor(db: Queryable, taskId: TaskId): Promise<WaitsFor | null> {
  const [row] = await db.query<{ waits_for: WaitsFor | null }>(
    'select waits_for from sluice.tasks where id = $1::uuid',
    [taskId],
  );
  return row?.waits_for ?? null;
}
