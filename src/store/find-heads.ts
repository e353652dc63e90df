import type { Instant, Queryable } from './database.js';
import { readyOf, type ReadyRow, type ReadyTaskRow } from './task-row.js';

/**
 * Index: tasks_line, two looks for each window of the queue, however many tasks are in it.
 */
const findHeadsSql = `
with recursive step as (
  select ''::text collate "C" as task_type, '{}'::text[] collate "C" as capabilities,
    0::smallint as priority, 0 as n
  union all
  select next.*, step.n + 1
  from step, lateral (
    select task_type, capabilities, priority
    from sluice.tasks
    where status = 'queued' and queue = $1
      and (task_type, capabilities, priority) > (step.task_type, step.capabilities, step.priority)
    order by task_type, capabilities, priority
    limit 1
  ) as next
  where step.n < $2
)
select
  $1 as queue, step.task_type, step.capabilities, step.priority, head.id, head.seq, head.cost,
  date_part('epoch', coalesce($3::timestamptz, now()) - head.eligible_at) * 1000 as age_ms,
  date_part('epoch', head.eligible_at) * 1000 as eligible_ms
from step, lateral (
  select id, seq, cost, eligible_at
  from sluice.tasks line
  where line.queue = $1 and line.task_type = step.task_type
    and line.capabilities = step.capabilities and line.priority = step.priority
    and line.status = 'queued'
  order by line.eligible_at, line.seq
  limit 1
) as head`;

/** The first queued task of each window of a queue, of so many windows at most. */
export async function findHeads(
  db: Queryable,
  queue: string,
  maxWindows: number,
  now: Instant,
): Promise<ReadyRow[]> {
  const rows = await db.query<ReadyTaskRow>(findHeadsSql, [queue, maxWindows, now]);
  return rows.map(readyOf);
}
