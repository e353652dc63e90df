import type { TaskId } from '../domain/ids.js';
import { column } from './columns.js';
import type { Queryable } from './database.js';

/**
 * Queued, but the ready queue had no room: they wait for it again, where they were in the line.
 * Index: the primary key. Who was claimed or ended in the meantime is left alone.
 */
export async function returnToBacklog(db: Queryable, taskIds: readonly TaskId[]): Promise<void> {
  await db.query(
    `update sluice.tasks task
     set status = 'pending', waits_for = 'room', queued_at = null
     from unnest($1::uuid[]) as given (id)
     where task.id = given.id and task.status = 'queued'`,
    [column(taskIds, (taskId) => taskId)],
  );
}
