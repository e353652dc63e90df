import type { TaskId } from '../domain/ids.js';
import type { Database, Instant, Queryable } from './database.js';
import { lockWorkflows, releaseHeads } from './release-heads.js';

/**
 * Ends or revives tasks of which some may be members of workflows. Those serialise on their
 * workflows' rows, and then whoever is first may go. A task never changes its workflow, so that
 * looking it up beforehand is safe. `change` counts what it changed, or leaves that to `count` at
 * the end of the transaction.
 */
export async function changeMembers<Row>(
  db: Database,
  taskIds: readonly TaskId[],
  now: Instant,
  change: (connection: Queryable, counts: boolean) => Promise<Row[]>,
  count: (tx: Queryable, rows: readonly Row[]) => Promise<void>,
): Promise<Row[]> {
  const workflowIds = await findWorkflowIds(db, taskIds);
  if (workflowIds.length === 0) return change(db, true);
  return db.transaction(async (tx) => {
    await lockWorkflows(tx, workflowIds);
    const rows = await change(tx, false);
    await releaseHeads(tx, workflowIds, now);
    await count(tx, rows);
    return rows;
  });
}

/** Without "is not null", which would tempt the planner to read the members of all workflows. */
async function findWorkflowIds(db: Queryable, taskIds: readonly TaskId[]): Promise<string[]> {
  const rows = await db.query<{ workflow_id: string | null }>(
    `select workflow_id from sluice.tasks where id = any($1::uuid[])
     union
     select workflow_id from sluice.task_history where id = any($1::uuid[])`,
    [taskIds],
  );
  return rows.flatMap((row) => row.workflow_id ?? []);
}
