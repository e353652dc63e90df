import type { TaskId } from '../domain/ids.js';
import { rankOf, type Priority } from '../domain/priority.js';
import type { TaskFilter } from '../protocol/tasks-api.js';
import { isWantedBy, livingFor, tablesOf } from './bulk-candidates.js';
import type { Database, Queryable } from './database.js';
import { filterValues, ofFilter } from './task-filter.js';
import { firstTaskId, lastTaskId, maxScannedRows } from './task-walk.js';

/** Tasks that one write of a bulk action takes. */
export interface Found<Cursor = TaskId> {
  /** May be empty while `next` is set: what one call reads is bounded. */
  readonly taskIds: readonly TaskId[];
  /** Where the next call goes on; null: these were the last. */
  readonly next: Cursor | null;
}

/** Where the next call goes on: an id, or the place among the members of a workflow. */
export type CancelCursor = TaskId | number;

/**
 * Newest first, so that no member of a workflow is let go only because those in front of it were
 * cancelled a moment before.
 */
export function findCancellable(
  db: Database,
  filter: TaskFilter,
  limit: number,
  after: CancelCursor | null,
): Promise<Found<CancelCursor>> {
  return filter.workflowId === undefined
    ? walkTasks(db, filter, 'cancel', { limit, after: after as TaskId | null })
    : findAmongMembers(db, filter, limit, after);
}

/**
 * Oldest first: what failed first runs first, and no member of a workflow is let go before those in front of it are
 * back.
 */
export function findReplayable(
  db: Queryable,
  filter: TaskFilter,
  limit: number,
  after: TaskId | null,
): Promise<Found> {
  return walkTasks(db, filter, 'replay', { limit, after });
}

/** Those that have not started and have another priority; oldest first: these run next. */
export function findWaiting(
  db: Queryable,
  filter: TaskFilter,
  limit: number,
  { after, priority }: { readonly after: TaskId | null; readonly priority: Priority },
): Promise<Found> {
  return walkTasks(db, filter, 'reprioritise', { limit, after, priority });
}

interface Walk {
  readonly limit: number;
  readonly after: TaskId | null;
  readonly priority?: Priority;
}

async function walkTasks(
  db: Queryable,
  filter: TaskFilter,
  action: 'cancel' | 'replay' | 'reprioritise',
  { limit, after, priority }: Walk,
): Promise<Found> {
  const isNewestFirst = action === 'cancel';
  const isInHistory = tablesOf(action, filter.status) === 'history';
  const rows = await db.query<{ id: TaskId | null; floor: TaskId | null }>(
    walkStatement(
      isInHistory ? 'select * from sluice.task_history' : livingFor(action, filter),
      isWantedBy(action),
      isNewestFirst,
    ),
    [
      ...filterValues(filter),
      filter.status ?? null,
      after ?? (isNewestFirst ? lastTaskId : firstTaskId),
      maxScannedRows,
      limit,
      priority === undefined ? null : rankOf(priority),
    ],
  );
  const taskIds = rows.flatMap((row) => (row.id === null ? [] : [row.id]));
  const isFull = taskIds.length === limit;
  return { taskIds, next: (isFull ? taskIds.at(-1) : rows[0]?.floor) ?? null };
}

function walkStatement(source: string, isWanted: string, isNewestFirst: boolean): string {
  return `with floor as (
       select (
         select id from (${source}) source where id ${isNewestFirst ? '<' : '>'} $9::uuid
         order by id ${isNewestFirst ? 'desc' : 'asc'} offset $10::int - 1 limit 1
       ) as id
     )
     select found.id, floor.id as floor
     from floor left join lateral (
       select task.id from (${source}) task
       where task.id ${isNewestFirst ? '<' : '>'} $9::uuid
         and task.id ${isNewestFirst ? '>=' : '<='}
           coalesce(floor.id, '${isNewestFirst ? firstTaskId : lastTaskId}')
         and ($12::smallint is null or task.priority <> $12)
         and ${isWanted} and ${ofFilter}
       order by task.id ${isNewestFirst ? 'desc' : 'asc'} limit $11
     ) found on true`;
}

/** Index: tasks_workflow_line, which holds all that can be cancelled, from its end. */
const lineOfMembers = (workflow: string, seq: string) => `
  select * from sluice.tasks
  where workflow_id = ${workflow} and (status not in ('dead_letter', 'failed') or halts_workflow)
    and seq < ${seq}::bigint
  order by seq desc`;

/** After every seq there is. */
const lastSeq = Number.MAX_SAFE_INTEGER;

async function findAmongMembers(
  db: Database,
  filter: TaskFilter,
  limit: number,
  after: CancelCursor | null,
): Promise<Found<CancelCursor>> {
  const values = [...filterValues(filter), filter.status ?? null, after ?? lastSeq];
  return db.transaction(async (tx) => {
    // A workflow that is taken for a short one would be read and sorted as a whole.
    await tx.run('set local enable_bitmapscan = off; set local enable_sort = off');
    const rows = await tx.query<{ id: TaskId; seq: number }>(
      `select task.id, task.seq from (${lineOfMembers('$4', '$9')} limit ${maxScannedRows}) task
       where ${isWantedBy('cancel')} and ${ofFilter}
       order by task.seq desc limit $10`,
      [...values, limit],
    );
    const taskIds = rows.map((row) => row.id);
    if (rows.length === limit) return { taskIds, next: rows.at(-1)?.seq ?? null };
    const [floor] = await tx.query<{ seq: number }>(
      `${lineOfMembers('$1', '$2')} offset ${maxScannedRows - 1} limit 1`,
      [filter.workflowId, after ?? lastSeq],
    );
    return { taskIds, next: floor?.seq ?? null };
  });
}
