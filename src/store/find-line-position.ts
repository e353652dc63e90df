import type { TaskId } from '../domain/ids.js';
import type { Queryable } from './database.js';

/**
 * How many of its window stand in line before a queued task, counted up to `limit`; null: it is not queued. Index:
 * tasks_line.
 */
export async function findLinePosition(
  db: Queryable,
  taskId: TaskId,
  limit: number,
): Promise<number | null> {
  const [row] = await db.query<{ position: number }>(
    `select (
       select count(*) from (
         select from sluice.tasks t
         where t.queue = task.queue and t.task_type = task.task_type
           and t.capabilities = task.capabilities and t.priority = task.priority
           and t.status = 'queued' and (t.eligible_at, t.seq) < (task.eligible_at, task.seq)
         limit $2
       ) before
     )::integer as position
     from sluice.tasks task where task.id = $1::uuid and task.status = 'queued'`,
    [taskId, limit],
  );
  return row?.position ?? null;
}
