import type { NextTask } from '../domain/forecast.js';
import { priorityOf } from '../domain/priority.js';
import type { Cost } from '../domain/queue-settings.js';
import type { Instant, Queryable } from './database.js';
import { costOf } from './task-row.js';

/** Of so many lanes and priorities; with more of them, a part of each. */
const maxWindows = 20;
const leastOfWindow = 50;

/**
 * Index: tasks_line, entered once for each window of the queue. Where a queue has many windows each gives fewer tasks:
 * together about twice as many as are asked for.
 */
const findNextSql = `
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
  where step.n < ${maxWindows}
), windows as (
  select step.*, count(*) over () as windows from step where step.n > 0
)
select early.priority, early.seq, early.cost,
  date_part('epoch', coalesce($3::timestamptz, now()) - early.eligible_at) * 1000 as age_ms,
  case when early.expires_at < 'infinity'
    then date_part('epoch', early.expires_at - coalesce($3::timestamptz, now())) * 1000
  end as expires_in_ms
from windows, lateral (
  select priority, seq, cost, eligible_at, expires_at
  from sluice.tasks line
  where line.queue = $1 and line.task_type = windows.task_type
    and line.capabilities = windows.capabilities and line.priority = windows.priority
    and line.status = 'queued'
  order by line.eligible_at, line.seq
  limit case when windows.windows = 1 then $2::integer
    else greatest(${leastOfWindow}, 2 * $2::integer / windows.windows) end
) as early
order by early.priority, early.eligible_at, early.seq
limit $2::integer`;

interface NextRow {
  readonly priority: number;
  readonly seq: number;
  readonly cost: Cost | null;
  readonly age_ms: number;
  readonly expires_in_ms: number | null;
}

/** The tasks of a queue that are next in line, so many at most. */
export async function findNextInLine(
  db: Queryable,
  queue: string,
  limit: number,
  now: Instant,
): Promise<NextTask[]> {
  const rows = await db.query<NextRow>(findNextSql, [queue, limit, now]);
  return rows.map(({ priority, seq, cost, age_ms: ageMs, expires_in_ms: expiresInMs }) => ({
    priority: priorityOf(priority),
    seq,
    cost: costOf(cost),
    ageMs,
    expiresInMs,
  }));
}
