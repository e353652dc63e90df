import type { Lane } from '../domain/lane.js';
import { column } from './columns.js';
import type { Queryable } from './database.js';

/** Index: tasks_line, one probe for each lane, however long its line is. */
const findLanesSql = `
with recursive step as (
  select wanted.queue collate "C" as queue, ''::text collate "C" as task_type,
    '{}'::text[] collate "C" as capabilities, 0 as n
  from unnest($1::text[]) as wanted (queue)
  union all
  select step.queue, next.task_type, next.capabilities, step.n + 1
  from step, lateral (
    select line.task_type, line.capabilities
    from sluice.tasks line
    where line.status = 'queued' and line.queue = step.queue
      and (line.task_type, line.capabilities) > (step.task_type, step.capabilities)
    order by line.task_type, line.capabilities
    limit 1
  ) as next
  where step.n < $2
)
select queue, task_type, capabilities from step where n > 0`;

/** Lanes of these queues that have tasks in line, so many of each queue at most. */
export async function findLanes(
  db: Queryable,
  queues: readonly string[],
  maxOfQueue: number,
): Promise<Lane[]> {
  const names = column(queues, (name) => name);
  const rows = await db.query<{ queue: string; task_type: string; capabilities: string[] }>(
    findLanesSql,
    [names, maxOfQueue],
  );
  return rows.map(({ queue, task_type: taskType, capabilities }) => {
    return { queue, taskType, capabilities };
  });
}
