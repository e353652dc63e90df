import type { TaskId } from '../domain/ids.js';
import type { TaskFilter } from '../protocol/tasks-api.js';
import { isWantedBy, livingFor, tablesOf, type Tables } from './bulk-candidates.js';
import type { Database, Queryable } from './database.js';
import { filterValues, ofFilter } from './task-filter.js';
import { maxScannedRows } from './task-walk.js';
import { isAboveFloor, walkNewest } from './walk-newest.js';

/** How much of parameters one call reads. */
export interface SearchBudget {
  readonly bytes: number;
  /** Tasks whose parameters are read before the next look at the budget, 256 KiB each at most. */
  readonly tasksInBlock: number;
}

/** Postgres decompresses and searches 100 MiB a second and more, but for a text made to be slow. */
export const onServer: SearchBudget = { bytes: 16 * 1024 * 1024, tasksInBlock: 50 };
/** Embedded Postgres runs in this thread: a text made to be slow (100 steps a byte) holds up nobody for 100 ms. */
const embedded: SearchBudget = { bytes: 2 * 1024 * 1024, tasksInBlock: 5 };

export function searchBudgetOf({ isExclusive }: Pick<Database, 'isExclusive'>): SearchBudget {
  return isExclusive ? embedded : onServer;
}

export interface TextSearch {
  readonly text: string;
  readonly limit: number;
  readonly before: TaskId;
}

export interface TextFound {
  readonly taskIds: readonly TaskId[];
  /** Older ones were not looked at; null: all were. */
  readonly next: TaskId | null;
}

/**
 * The newest tasks whose parameters hold the text, as it stands there: no pattern. They are read block by block, until
 * enough were found or the budget is used up.
 */
export async function searchText(
  db: Queryable,
  filter: TaskFilter,
  { text, limit, before }: TextSearch,
  { bytes, tasksInBlock }: SearchBudget,
): Promise<TextFound> {
  const [row] = await db.query<{ ids: readonly TaskId[]; next: TaskId | null }>(
    searchStatement(livingFor(undefined, filter), tablesOf(undefined, filter.status)),
    [
      ...filterValues(filter),
      filter.status ?? null,
      before,
      maxScannedRows,
      text,
      limit,
      bytes,
      tasksInBlock,
    ],
  );
  return { taskIds: row?.ids ?? [], next: row?.next ?? null };
}

function searchStatement(living: string, tables: Tables): string {
  return `
    with recursive ${walkNewest(living, tables)}, candidates as materialized (
      select coalesce(array_agg(task.id order by task.id desc), '{}') as ids
      from walk task cross join floor
      where ${isAboveFloor} and ${isWantedBy(undefined)} and ${ofFilter}
    ), looked (blocks, bytes, found) as (
      select 0, 0::bigint, '{}'::uuid[]
      union all
      select blocks + 1, looked.bytes + block.bytes, looked.found || block.found
      from looked cross join candidates cross join lateral (
        select coalesce(sum(octet_length(parameters)), 0)::bigint as bytes,
          coalesce(array_agg(id order by place) filter (where strpos(parameters, $11) > 0), '{}')
            as found
        from
          unnest(ids[blocks * $14::int + 1:(blocks + 1) * $14::int])
            with ordinality as candidate (id, place),
          lateral (
            select parameters::text as parameters from sluice.task_inputs
            where task_id = candidate.id offset 0
          ) input
      ) block
      where blocks * $14::int < cardinality(ids)
        and looked.bytes < $13::bigint and cardinality(looked.found) < $12::int
    )
    select found[1:$12::int] as ids, case
      when cardinality(found) >= $12::int then found[$12::int]
      when blocks * $14::int < cardinality(ids) then ids[blocks * $14::int]
      else floor.id
    end as next
    from looked cross join candidates cross join floor
    order by blocks desc limit 1`;
}
