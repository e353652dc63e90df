import type { TaskId, WorkerId } from '../domain/ids.js';
import type { Priority } from '../domain/priority.js';
import type { Cost } from '../domain/queue-settings.js';
import type { Held } from '../protocol/api.js';
import { heldColumns } from './columns.js';
import type { Database, Instant, Queryable } from './database.js';
import { lockWorkflows, releaseHeads } from './release-heads.js';
import type { BacklogWindow } from './task-row.js';

export interface FinishedRow {
  readonly taskId: TaskId;
  readonly queue: string;
  readonly taskType: string;
  readonly priority: Priority;
  readonly cost: Cost;
  readonly workerId: WorkerId;
  readonly workflowId: string | null;
  readonly attempt: number;
  readonly from: 'assigned' | 'executing';
  readonly runMs: number;
  /** Where the next member of its workflow now waits for room. */
  readonly released: BacklogWindow | null;
}

export function leftOver<Item extends Held>(
  items: readonly Item[],
  finished: readonly FinishedRow[],
): Item[] {
  const done = new Set(finished.map((row) => row.taskId));
  return items.filter((item) => !done.has(item.taskId));
}

export const findWorkflowsSql = `
select distinct task.workflow_id
from unnest($1::uuid[], $2::uuid[]) as held (id, lease)
join sluice.tasks task on task.id = held.id and task.lease = held.lease
where task.workflow_id is not null`;

/**
 * The same again for members of workflows, with their workflows locked; then the next ones go.
 * `finish` is a statement of its own after the lock, and so is the release after it.
 */
export async function finishMembers<Item extends Held, Finished extends FinishedRow>(
  db: Database,
  items: readonly Item[],
  now: Instant,
  finish: (
    tx: Queryable,
    items: readonly Item[],
    now: Instant,
    withMembers: boolean,
  ) => Promise<Finished[]>,
): Promise<Finished[]> {
  const members = await db.query<{ workflow_id: string }>(findWorkflowsSql, heldColumns(items));
  if (members.length === 0) return [];
  const workflowIds = members.map((row) => row.workflow_id);
  return db.transaction(async (tx) => {
    await lockWorkflows(tx, workflowIds);
    const finished = await finish(tx, items, now, true);
    const heads = await releaseHeads(tx, workflowIds, now);
    const windows = new Map(heads.map((head) => [head.workflowId, head]));
    return finished.map((row) => {
      const head = row.workflowId === null ? undefined : windows.get(row.workflowId);
      return head?.waitsFor === 'room' ? { ...row, released: head.window } : row;
    });
  });
}
