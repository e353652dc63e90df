import { likePatterns, unconfined } from '../domain/confinement.js';
import type { TaskId } from '../domain/ids.js';
import type { DeadLetterFilter, DeadLetterPage } from '../protocol/dead-letters-api.js';
import type { ListRequest } from '../protocol/tasks-api.js';
import type { Instant, Queryable } from './database.js';
import { pageFrom, type ListedRow } from './list-tasks.js';
import { decodeIdCursor, defaultPageLimit } from './paging.js';
import { cutToBytes, livingColumns, viewColumns, viewJoins } from './task-view.js';
import { firstTaskId, lastTaskId, maxScannedRows } from './task-walk.js';

/**
 * The walk: at most `maxScannedRows` dead letters in the order of their ids, by the index of one filter, the
 * most selective that is given. Of these the other filters choose.
 * `last` is the parameter of the pattern, if the filter has one.
 * Indexes: dead_letters_pattern, tasks_dead_by_code, tasks_dead_by_type, tasks_dead_by_queue; without a filter tasks_ended.
 */
function walkSql(
  { queue, taskType, code, pattern }: DeadLetterFilter,
  range: string,
  order: string,
  last: `$${number}`,
): string {
  if (pattern !== undefined) {
    return `select task.* from (
        select task_id as id from sluice.dead_letters where pattern = ${last}
      ) counted join sluice.tasks task using (id)
      where ${range} order by id ${order} limit ${maxScannedRows}`;
  }
  const filter =
    code !== undefined
      ? `and ${codeOfError} = $3`
      : taskType !== undefined
        ? 'and task_type = $2'
        : queue !== undefined
          ? 'and queue = $1'
          : '';
  return `select * from sluice.tasks where status = 'dead_letter' and ${range} ${filter}
    order by id ${order} limit ${maxScannedRows}`;
}

const codeOfError = 'sluice.error_code(error) collate "C"';

const isWanted = `status = 'dead_letter'
  and ($1::text is null or queue = $1)
  and ($2::text is null or task_type = $2)
  and ($4::timestamptz is null or ended_at >= $4)
  and ($5::timestamptz is null or ended_at < $5)
  and ($6::text is null or owner = $6)
  and ($7::text[] is null or queue like any($7))`;

/** A walk by code has chosen by it already. To read the code again is to decompress the error again. */
function ofCode({ pattern }: DeadLetterFilter): string {
  return pattern === undefined
    ? '$3::text is not distinct from $3'
    : `($3::text is null or ${codeOfError} = $3)`;
}

function wanted(filter: DeadLetterFilter): unknown[] {
  const { queue, taskType, code, since, until, within = unconfined } = filter;
  const escaped = code === undefined ? null : JSON.stringify(code).slice(1, -1);
  return [
    ...[queue ?? null, taskType ?? null, escaped, since ?? null, until ?? null],
    ...[within.owner, likePatterns(within)],
  ];
}

/** The last parameter, of a walk by pattern alone: Postgres refuses one that no part of a statement uses. */
function patternIn({ pattern }: DeadLetterFilter): unknown[] {
  return pattern === undefined ? [] : [pattern];
}

export async function listDeadLetters(
  db: Queryable,
  filter: DeadLetterFilter,
  page: ListRequest,
  now: Instant,
): Promise<DeadLetterPage> {
  const { include = [] } = page;
  const limit = page.limit ?? defaultPageLimit;
  const before = page.cursor === undefined ? lastTaskId : decodeIdCursor(page.cursor);
  const rows = await db.query<ListedRow & { total: number; floor: TaskId | null }>(
    `with recursive counted as (
       select count(*) as total from (${walkSql(filter, `id < '${lastTaskId}'`, 'desc', '$11')}) walk
       where ${isWanted} and ${ofCode(filter)}
     ), walk as materialized (${walkSql(filter, 'id < $8::uuid', 'desc', '$11')}), page as (
       select ${livingColumns} from walk where ${isWanted} and ${ofCode(filter)}
       order by id desc limit $9::int
     ), ${cutToBytes(include)}
     select ${viewColumns(include)}, counted.total, (select count(*) from page) as found,
       (select id from walk order by id desc offset ${maxScannedRows - 1} limit 1) as floor,
       coalesce($10::timestamptz, now()) as now
     from counted left join kept task on true ${viewJoins}
     order by task.id desc`,
    [...wanted(filter), before, limit, now, ...patternIn(filter)],
  );
  const listed = pageFrom(rows, limit, include, rows[0]?.floor ?? null);
  return { ...listed, totalCount: rows[0]?.total ?? 0 };
}

export interface FoundDeadLetters {
  readonly taskIds: readonly TaskId[];
  /** To look on from; null: these were the last. */
  readonly next: TaskId | null;
}

/** Oldest first: what waits longest for somebody to look at it. */
export async function findDeadLetters(
  db: Queryable,
  filter: DeadLetterFilter,
  limit: number,
  after: TaskId = firstTaskId,
): Promise<FoundDeadLetters> {
  const [row] = await db.query<{ ids: readonly TaskId[] | null; last: TaskId | null }>(
    `with walk as materialized (${walkSql(filter, 'id > $8::uuid', 'asc', '$10')})
     select
       (
         select array_agg(id order by id)
         from (
           select id from walk where ${isWanted} and ${ofCode(filter)} order by id limit $9::int
         ) found
       ) as ids,
       (select id from walk order by id offset ${maxScannedRows - 1} limit 1) as last`,
    [...wanted(filter), after, limit, ...patternIn(filter)],
  );
  const taskIds = row?.ids ?? [];
  return { taskIds, next: (taskIds.length < limit ? row?.last : taskIds.at(-1)) ?? null };
}
