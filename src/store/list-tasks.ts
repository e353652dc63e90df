import { unconfined } from '../domain/confinement.js';
import { instantOf, type TaskId } from '../domain/ids.js';
import type { Page } from '../protocol/page.js';
import type {
  ListedTask,
  ListInclude,
  ListRequest,
  TaskFilter,
  TaskPage,
  TaskSearch,
} from '../protocol/tasks-api.js';
import type { Instant, Queryable } from './database.js';
import { decodeIdCursor, defaultPageLimit, encodeCursor } from './paging.js';
import { onServer, searchText, type SearchBudget } from './search-text.js';
import { filterValues, ofFilter } from './task-filter.js';
import { lastTaskId, livingOf, maxScannedRows } from './task-walk.js';
import {
  cutToBytes,
  historyColumns,
  livingColumns,
  toListedTask,
  viewColumns,
  viewJoins,
  type ViewRow,
} from './task-view.js';

/**
 * Newest first by id, the living and history merged. A task keeps its id when it ends, so that
 * paging meets every task once, whatever ends in between.
 */
export async function listTasks(
  db: Queryable,
  search: TaskSearch,
  page: ListRequest,
  now: Instant,
  budget = onServer,
): Promise<TaskPage> {
  const { text, ...filter } = search;
  const listed =
    text === undefined
      ? await listMatches(db, filter, page, now)
      : await listWithText(db, { ...filter, text }, page, now, budget);
  const { nextCursor } = listed;
  const searchedBackTo =
    nextCursor === null ? null : new Date(instantOf(decodeIdCursor(nextCursor)));
  return { ...listed, searchedBackTo };
}

async function listMatches(
  db: Queryable,
  filter: TaskFilter,
  page: ListRequest,
  now: Instant,
): Promise<Page<ListedTask>> {
  const { include = [], limit = defaultPageLimit } = page;
  const { status, within = unconfined } = filter;
  const unfiltered = Object.values(filter).every((wanted) => wanted === undefined);
  const rows = await db.query<ListedRow & { floor: TaskId | null }>(
    listStatement(livingOf(status, within.owner !== null), include),
    [
      ...filterValues(filter),
      status ?? null,
      beforeOf(page),
      unfiltered ? limit : maxScannedRows,
      limit,
      now,
    ],
  );
  return pageFrom(rows, limit, include, rows[0]?.floor ?? null);
}

/** First which tasks hold the text, then these tasks: one that ends in between is found in history. */
async function listWithText(
  db: Queryable,
  { text, ...filter }: TaskFilter & { readonly text: string },
  page: ListRequest,
  now: Instant,
  budget: SearchBudget,
): Promise<Page<ListedTask>> {
  const { include = [], limit = defaultPageLimit } = page;
  const wanted = { text, limit, before: beforeOf(page) };
  const { taskIds, next } = await searchText(db, filter, wanted, budget);
  const rows = await db.query<ListedRow>(foundStatement(include), [taskIds, now]);
  return pageFrom(rows, limit, include, next);
}

function beforeOf({ cursor }: ListRequest): TaskId {
  return cursor === undefined ? lastTaskId : decodeIdCursor(cursor);
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
 * Both tables are read at most $10 rows deep, so that nothing below the higher of the two floors
 * may be answered: the other table was not read that far. Without a filter $10 is the page.
 */
function listStatement(living: string, include: readonly ListInclude[]): string {
  const wantsLiving = `$8::text is null or $8 not in ('completed', 'cancelled')`;
  const wantsHistory = `$8::text is null or $8 in ('completed', 'cancelled')`;
  return `
    with recursive floor as (
      select greatest(
        (
          select id from (${living}) living where id < $9::uuid and (${wantsLiving})
          order by id desc offset $10::int - 1 limit 1
        ),
        (
          select id from sluice.task_history where id < $9::uuid and (${wantsHistory})
          order by id desc offset $10::int - 1 limit 1
        )
      ) as id
    ), page as (
      select * from (
        (
          select ${livingColumns} from (${living}) living
          where id < $9::uuid and (${wantsLiving}) order by id desc limit $10::int
        )
        union all
        (
          select ${historyColumns} from sluice.task_history
          where id < $9::uuid and (${wantsHistory}) order by id desc limit $10::int
        )
      ) task
      where id >= coalesce((select id from floor), '00000000-0000-0000-0000-000000000000')
        and ($8::text is null or status = $8)
        and ${ofFilter}
      order by id desc limit $11::int
    ), ${cutToBytes(include)}
    select ${viewColumns(include)}, floor.id as floor, (select count(*) from page) as found,
      coalesce($12::timestamptz, now()) as now
    from floor left join kept task on true ${viewJoins}
    order by task.id desc`;
}

function foundStatement(include: readonly ListInclude[]): string {
  return `
    with recursive page as (
      select ${livingColumns} from sluice.tasks where id = any($1::uuid[])
      union all
      select ${historyColumns} from sluice.task_history where id = any($1::uuid[])
    ), ${cutToBytes(include)}
    select ${viewColumns(include)}, (select count(*) from page) as found,
      coalesce($2::timestamptz, now()) as now
    from kept task ${viewJoins}
    order by task.id desc`;
}
