import type { Tables } from './bulk-candidates.js';

/** What a filter asks about. None of these columns is large. */
const columns = `id, status, queue, task_type, user_id, workflow_id, tags, owner, ended_at,
  halts_workflow`;

/**
 * Common table expressions: `walk` has the newest tasks before $9, $10 of each table at most, and `floor` the id down to
 * which it has all of them; null when it has all there are. What lies below is left to the next call: the other table was
 * not read that far.
 */
export function walkNewest(living: string, tables: Tables): string {
  return `walk as materialized (${walksOf(living, tables)}), floor as (
      select (
        select (array_agg(id order by id))[1] as id from walk
        group by place having count(*) = $10::int order by 1 desc limit 1
      ) as id
    )`;
}

function walksOf(living: string, tables: Tables): string {
  switch (tables) {
    case 'living':
      return walkOf(`(${living})`);
    case 'history':
      return historyWalk;
    case 'both':
      return `${walkOf(`(${living})`)} union all ${historyWalk}`;
  }
}

const walkOf = (table: string) =>
  `(select 0 as place, ${columns} from ${table} source where id < $9::uuid
    order by id desc limit $10::int)`;

const historyWalk = `(select 1 as place, ${columns} from sluice.task_history source where id < $9::uuid
    order by id desc limit $10::int)`;

/** Whether a task aliased `task` is not below the floor. */
export const isAboveFloor = `
  task.id >= coalesce(floor.id, '00000000-0000-0000-0000-000000000000')`;
