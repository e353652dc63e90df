import { likePatterns, unconfined } from '../domain/confinement.js';
import type { TaskId } from '../domain/ids.js';
import type { Page } from '../protocol/page.js';
import type { ListedTask, ListInclude, ListRequest, TaskFilter } from '../protocol/tasks-api.js';
import type { Instant, Queryable } from './database.js';
import { decodeIdCursor, defaultPageLimit, encodeCursor } from './paging.js';
import {
  cutToBytes,
  historyColumns,
  livingColumns,
  toListedTask,
  viewColumns,
  viewJoins,
  type ViewRow,
} from './task-view.js';

/** Of each table, in one call. A filter that matches little answers little, and a cursor. */
export const maxScannedRows = 10_000;

/** After every id there is. */
export const lastTaskId = 'ffffffff-ffff-ffff-ffff-ffffffffffff' as TaskId;

/**
 * Newest first by id, the living and history merged. A task keeps its id when it ends, so that
 * paging meets every task once, whatever ends in between.
 */
export async function listTasks(
  db: Queryable,
  filter: TaskFilter,
  page: ListRequest,
  now: Instant,
): Promise<Page<ListedTask>> {
  const { include = [] } = page;
  const { within = unconfined } = filter;
  const limit = page.limit ?? defaultPageLimit;
  const before = page.cursor === undefined ? lastTaskId : decodeIdCursor(page.cursor);
  const unfiltered = Object.values(filter).every((wanted) => wanted === undefined);
  const rows = await db.query<ListedRow & { floor: TaskId | null }>(
    listStatement(livingOf(filter.status, within.owner !== null), include),
    [
      before,
      unfiltered ? limit : maxScannedRows,
      limit,
      filter.status ?? null,
      filter.queue ?? null,
      filter.taskType ?? null,
      filter.userId ?? null,
      filter.workflowId ?? null,
      filter.tag ?? null,
      now,
      within.owner,
      likePatterns(within),
    ],
  );
  return pageFrom(rows, limit, include, rows[0]?.floor ?? null);
}

/** A row of a list; one without an id: there is none. */
export type ListedRow = (ViewRow | { readonly id: null }) & {
  readonly now: Date;
  /** How many there were before the page was cut to its bytes. */
  readonly found: number;
};

/** `floor`: where the walk ended that looked for them; null: it met the end. */
export function pageFrom(
  rows: readonly ListedRow[],
  limit: number,
  include: readonly ListInclude[],
  floor: TaskId | null,
): Page<ListedTask> {
  const items = rows.flatMap((row) =>
    row.id === null ? [] : [toListedTask(row, row.now, include)],
  );
  const isFull = items.length === limit || items.length < (rows[0]?.found ?? 0);
  const last = isFull ? items.at(-1)?.taskId : floor;
  return { items, nextCursor: last ? encodeCursor(last) : null };
}

/**
 * The living that a status can be found among. Dead letters have an index in the order of the ids.
 * What is held is few, and found by the index of holders, whatever waits. Those of one key have an index
 * as well (tasks_owned); history has none, and is read as for any other filter.
 */
function livingOf(status: TaskFilter['status'], areOwned: boolean): string {
  if (areOwned) return 'select * from sluice.tasks where owner = $11';
  switch (status) {
    case 'dead_letter':
    case 'failed':
      return `select * from sluice.tasks where status in ('dead_letter', 'failed')`;
    case 'assigned':
    case 'executing':
      // Offset 0 keeps the planner from walking the primary key through everything that waits.
      return 'select * from sluice.tasks where worker_id is not null offset 0';
    case 'pending':
    case 'queued':
    case 'completed':
    case 'cancelled':
    case undefined:
      return 'select * from sluice.tasks';
  }
}

/**
 * Both tables are read at most $2 rows deep, so that nothing below the higher of the two floors
 * may be answered: the other table was not read that far. Without a filter $2 is the page.
 */
function listStatement(living: string, include: readonly ListInclude[]): string {
  const wantsLiving = `$4::text is null or $4 not in ('completed', 'cancelled')`;
  const wantsHistory = `$4::text is null or $4 in ('completed', 'cancelled')`;
  return `
    with recursive floor as (
      select greatest(
        (
          select id from (${living}) living where id < $1::uuid and (${wantsLiving})
          order by id desc offset $2::int - 1 limit 1
        ),
        (
          select id from sluice.task_history where id < $1::uuid and (${wantsHistory})
          order by id desc offset $2::int - 1 limit 1
        )
      ) as id
    ), page as (
      select * from (
        (
          select ${livingColumns} from (${living}) living
          where id < $1::uuid and (${wantsLiving}) order by id desc limit $2::int
        )
        union all
        (
          select ${historyColumns} from sluice.task_history
          where id < $1::uuid and (${wantsHistory}) order by id desc limit $2::int
        )
      ) merged
      where id >= coalesce((select id from floor), '00000000-0000-0000-0000-000000000000')
        and ($4::text is null or status = $4)
        and ($5::text is null or queue = $5)
        and ($6::text is null or task_type = $6)
        and ($7::text is null or user_id = $7)
        and ($8::text is null or workflow_id = $8)
        and ($9::text is null or $9 = any(tags))
        and ($11::text is null or owner = $11)
        and ($12::text[] is null or queue like any($12))
      order by id desc limit $3::int
    ), ${cutToBytes(include)}
    select ${viewColumns(include)}, floor.id as floor, (select count(*) from page) as found,
      coalesce($10::timestamptz, now()) as now
    from floor left join kept task on true ${viewJoins}
    order by task.id desc`;
}
