import type { Instant, Queryable } from './database.js';

/** Which repairs have anything to do. Each of them looks again by itself, and may find nothing. */
export interface SweepLook {
  readonly lapsedWorkers: boolean;
  readonly orphans: boolean;
  readonly overdue: boolean;
  readonly expired: boolean;
  /** Places of workflows that are kept for members that were cancelled. */
  readonly keptPlaces: boolean;
  readonly workflows: boolean;
  /** Something is in line. */
  readonly line: boolean;
}

interface LookRow {
  lapsed_workers: boolean;
  orphans: boolean;
  overdue: boolean;
  expired: boolean;
  kept_places: boolean;
  workflows: boolean;
  line: boolean;
}

/**
 * One probe of an index for each question, and one for each worker that holds something: the first
 * entry of a worker in tasks_held is the one that lapses first. The living workers are read, by
 * workers_living.
 */
const lookSql = `
with recursive holder as (
  (
    select worker_id, lapses_at from sluice.tasks
    where worker_id is not null order by worker_id, lapses_at limit 1
  )
  union all
  select following.worker_id, following.lapses_at from holder cross join lateral (
    select t.worker_id, t.lapses_at from sluice.tasks t
    where t.worker_id > holder.worker_id order by t.worker_id, t.lapses_at limit 1
  ) following
), held as (
  select
    bool_or(lapses_at < coalesce($2::timestamptz, now())) as overdue,
    bool_or(not exists (
      select from sluice.workers w where w.id = holder.worker_id and w.status <> 'dead'
    )) as orphans
  from holder
)
select
  exists (
    select from sluice.workers
    where status <> 'dead'
      and last_heartbeat_at < coalesce($2::timestamptz, now()) - $1::float8 * interval '1 ms'
  ) as lapsed_workers,
  coalesce(held.orphans, false) as orphans,
  coalesce(held.overdue, false) as overdue,
  exists (
    select from sluice.tasks
    where expires_at <= coalesce($2::timestamptz, now()) and status in ('pending', 'queued')
  ) as expired,
  exists (select from sluice.workflows where held_task is not null) as kept_places,
  exists (
    select from sluice.tasks
    where workflow_id > '' and (status not in ('dead_letter', 'failed') or halts_workflow)
  ) as workflows,
  exists (select from sluice.tasks where status = 'queued') as line
from held`;

export async function lookForRepairs(
  db: Queryable,
  leaseMs: number,
  now: Instant,
): Promise<SweepLook> {
  const [row] = await db.query<LookRow>(lookSql, [leaseMs, now]);
  if (row === undefined) throw new Error('an aggregate without groups answered no row');
  return {
    lapsedWorkers: row.lapsed_workers,
    orphans: row.orphans,
    overdue: row.overdue,
    expired: row.expired,
    keptPlaces: row.kept_places,
    workflows: row.workflows,
    line: row.line,
  };
}
