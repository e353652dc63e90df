import type { TaskId } from '../domain/ids.js';
import type { Page, PageRequest } from '../protocol/page.js';
import type { TaskFilter, TaskView } from '../protocol/tasks-api.js';
import type { Instant, Queryable } from './database.js';
import { decodeIdCursor, defaultPageLimit, encodeCursor } from './paging.js';
import { historyColumns, livingColumns, toTaskView, viewColumns, viewJoins } from './task-view.js';
import type { ViewRow } from './task-view.js';

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
  page: PageRequest,
  now: Instant,
): Promise<Page<TaskView>> {
  const limit = page.limit ?? defaultPageLimit;
  const before = page.cursor === undefined ? lastTaskId : decodeIdCursor(page.cursor);
  const unfiltered = Object.values(filter).every((wanted) => wanted === undefined);
  const rows = await db.query<(ViewRow | { id: null }) & { now: Date; floor: TaskId | null }>(
    statementFor(filter.status),
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
    ],
  );
  const items = rows.flatMap((row) => (row.id === null ? [] : [toTaskView(row, row.now, false)]));
  const last = items.length === limit ? items.at(-1)?.taskId : rows[0]?.floor;
  return { items, nextCursor: last ? encodeCursor(last) : null };
}

/**
 * The living that a status can be found among. Dead letters have an index in the order of the ids.
 * What is held is few, and found by the index of holders, whatever waits.
 */
function statementFor(status: TaskFilter['status']): string {
  switch (status) {
    case 'dead_letter':
    case 'failed':
      return listEnded;
    case 'assigned':
    case 'executing':
      return listHeld;
    case 'pending':
    case 'queued':
    case 'completed':
    case 'cancelled':
    case undefined:
      return listAny;
  }
}

const listAny = listStatement('select * from sluice.tasks');
const listEnded = listStatement(
  `select * from sluice.tasks where status in ('dead_letter', 'failed')`,
);
// Offset 0 keeps the planner from walking the primary key through everything that waits.
const listHeld = listStatement('select * from sluice.tasks where worker_id is not null offset 0');

/**
 * Both tables are read at most $2 rows deep, so that nothing below the higher of the two floors
 * may be answered: the other table was not read that far. Without a filter $2 is the page.
 */
function listStatement(living: string): string {
  const wantsLiving = `$4::text is null or $4 not in ('completed', 'cancelled')`;
  const wantsHistory = `$4::text is null or $4 in ('completed', 'cancelled')`;
  return `
    with floor as (
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
      order by id desc limit $3::int
    )
    select ${viewColumns(false)}, floor.id as floor, coalesce($10::timestamptz, now()) as now
    from floor left join page task on true ${viewJoins}
    order by task.id desc`;
}
