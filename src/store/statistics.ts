import { priorityOf, type Priority } from '../domain/priority.js';
import type { Instant, Queryable } from './database.js';

/** Tasks in line, whether the ready queue holds them or not. */
export interface LineCount {
  readonly queue: string;
  readonly priority: Priority;
  readonly effectivePriority: Priority;
  readonly count: number;
  readonly oldestEligibleAt: Date;
}

interface LineRow {
  queue: string;
  priority: number;
  effective: number;
  count: number;
  oldest: Date;
}

/**
 * Goes by the index tasks_line, every entry of it: what waits is read, so that the answer is to be
 * kept for a while.
 */
export async function countLine(db: Queryable, now: Instant): Promise<LineCount[]> {
  const rows = await db.query<LineRow>(countStatement, [now]);
  return rows.map((row) => ({
    queue: row.queue,
    priority: priorityOf(row.priority),
    effectivePriority: priorityOf(row.effective),
    count: row.count,
    oldestEligibleAt: row.oldest,
  }));
}

// By queue, since a join of every task to its queue's ageing would probe once for each task.
// The case is the domain's effectivePriority; a test compares the two. The defaults are those of a
// queue whose row is not written yet.
const countStatement = `
  with recursive named as (
    (
      select queue from sluice.tasks
      where status = 'queued'
      order by queue limit 1
    )
    union all
    select following.queue from named cross join lateral (
      select t.queue from sluice.tasks t
      where t.status = 'queued' and t.queue > named.queue
      order by t.queue limit 1
    ) following
  ), aged as (
    select named.queue,
      instant - ageing.low_to_medium_ms * interval '1 ms' as low_is_medium,
      instant - ageing.low_to_high_ms * interval '1 ms' as low_is_high,
      instant - ageing.medium_to_high_ms * interval '1 ms' as medium_is_high
    from named
    cross join coalesce($1::timestamptz, now()) as instant
    left join sluice.queues q on q.name = named.queue
    cross join lateral (
      select
        case when q.name is null then 600000 else q.low_to_medium_ms end as low_to_medium_ms,
        case when q.name is null then 1800000 else q.low_to_high_ms end as low_to_high_ms,
        case when q.name is null then 1200000 else q.medium_to_high_ms end as medium_to_high_ms
    ) ageing
  )
  select aged.queue, counted.* from aged cross join lateral (
    select t.priority,
      case
        when t.priority = 1 and t.eligible_at <= aged.medium_is_high then 0
        when t.priority = 2 and t.eligible_at <= aged.low_is_high then 0
        when t.priority = 2 and t.eligible_at <= aged.low_is_medium then 1
        else t.priority
      end as effective,
      count(*) as count, min(t.eligible_at) as oldest
    from sluice.tasks t
    where t.queue = aged.queue and t.status = 'queued'
    group by 1, 2
  ) counted
  order by aged.queue, counted.priority, counted.effective`;

/** Tasks that wait for a time; index: tasks_timed. */
export async function countScheduled(db: Queryable): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    `select count(*) as count from sluice.tasks where waits_for = 'time'`,
  );
  return row?.count ?? 0;
}

/** How long tasks in line have waited; null when none does. */
export async function measureAges(
  db: Queryable,
  now: Instant,
): Promise<{ readonly p50Seconds: number | null; readonly p95Seconds: number | null }> {
  const [row] = await db.query<{ p50: number | null; p95: number | null }>(
    `select
       greatest(0, extract(epoch from instant - eligible[1]))::float8 as p50,
       greatest(0, extract(epoch from instant - eligible[2]))::float8 as p95
     from coalesce($1::timestamptz, now()) as instant, (
       select percentile_disc(array[0.5, 0.95]) within group (order by eligible_at desc) as eligible
       from sluice.tasks where status = 'queued'
     ) line
     where eligible is not null`,
    [now],
  );
  return { p50Seconds: row?.p50 ?? null, p95Seconds: row?.p95 ?? null };
}
