import type { Queryable } from './database.js';

/** Names from `low` on, and before `high`. */
export interface NameRange {
  readonly low: string;
  readonly high: string;
}

/**
 * Index: tasks_line, one look for each queue that is found and one for each range, however many tasks
 * wait. Nothing is read beyond the limit.
 */
const findWaitingQueuesSql = `
select found.queue
from unnest($1::text[], $2::text[]) as span(low, high), lateral (
  with recursive step as (
    (
      select queue from sluice.tasks
      where status = 'queued' and queue >= span.low and queue < span.high
      order by queue limit 1
    )
    union all
    select next.queue from step, lateral (
      select queue from sluice.tasks
      where status = 'queued' and queue > step.queue and queue < span.high
      order by queue limit 1
    ) as next
  )
  select queue from step
) as found
limit $3`;

/** The queues that have a queued task, in the order of the ranges and of their names. */
export async function findWaitingQueues(
  db: Queryable,
  ranges: readonly NameRange[],
  limit: number,
): Promise<string[]> {
  const rows = await db.query<{ queue: string }>(findWaitingQueuesSql, [
    ranges.map(({ low }) => low),
    ranges.map(({ high }) => high),
    limit,
  ]);
  return rows.map(({ queue }) => queue);
}
