import type { Lease, TaskId, WorkerId } from '../domain/ids.js';
import type { Database, Instant, Queryable } from './database.js';
import { releaseHeads } from './release-heads.js';

/**
 * A member that is cancelled while it runs keeps its workflow's place (see cancel-tasks): its
 * worker may still be at it. These are the three ways to learn that it no longer is.
 */

/** The worker reported or released with the lease it had lost. Index: workflows_held_lease. */
export function letGoOfCancelled(
  db: Database,
  leases: readonly Lease[],
  now: Instant,
): Promise<void> {
  return free(db, now, (tx) =>
    tx.query<{ id: string }>(
      `select id from sluice.workflows
       where held_task is not null and held_lease = any($1::uuid[])
       order by id for update`,
      [leases],
    ),
  );
}

/**
 * The worker names what it runs, and this is not in it. A claim that is younger than a heartbeat
 * does not count: its answer may still be on its way to the worker. Index: workflows_held_worker.
 */
const claimOnItsWayMs = 15_000;

export function letGoUnlisted(
  db: Database,
  workerId: WorkerId,
  listed: readonly TaskId[],
  now: Instant,
): Promise<void> {
  return free(db, now, (tx) =>
    tx.query<{ id: string }>(
      `select id from sluice.workflows
       where held_task is not null and held_worker_id = $1::uuid
         and held_task <> all($2::uuid[])
         and held_since < coalesce($4::timestamptz, now()) - $3::float8 * interval '1 ms'
       order by id for update`,
      [workerId, listed, claimOnItsWayMs, now],
    ),
  );
}

/**
 * The attempt would have timed out by now, or its worker is dead. A worker counts the time from when
 * the task reached it, so it gets `graceMs` more, as for any other attempt that is overdue.
 * Indexes: workflows_held for the first, one probe of workflows_held_worker for each worker that
 * keeps a place, however many it keeps.
 */
export function freeHeldWorkflows(
  db: Database,
  limit: number,
  graceMs: number,
  now: Instant,
): Promise<void> {
  return free(db, now, async (tx) => {
    const overdue = await tx.query<{ id: string }>(lockOverdueSql, [limit, graceMs, now]);
    const orphaned = await tx.query<{ id: string }>(lockOrphanedSql, [limit]);
    return [...overdue, ...orphaned];
  });
}

const lockOverdueSql = `
select id from sluice.workflows
where held_task is not null
  and held_until < coalesce($3::timestamptz, now()) - $2::float8 * interval '1 ms'
order by held_until limit $1
for update skip locked`;

const lockOrphanedSql = `
with recursive holder as (
  (
    select held_worker_id from sluice.workflows
    where held_task is not null order by held_worker_id limit 1
  )
  union all
  select following.held_worker_id from holder cross join lateral (
    select f.held_worker_id from sluice.workflows f
    where f.held_task is not null and f.held_worker_id > holder.held_worker_id
    order by f.held_worker_id limit 1
  ) following
)
select kept.id
from holder cross join lateral (
  select f.id from sluice.workflows f
  where f.held_task is not null and f.held_worker_id = holder.held_worker_id
  limit $1
  for update skip locked
) kept
where not exists (
  select from sluice.workers w where w.id = holder.held_worker_id and w.status <> 'dead'
)
limit $1`;

async function free(
  db: Database,
  now: Instant,
  lockFree: (tx: Queryable) => Promise<{ id: string }[]>,
): Promise<void> {
  await db.transaction(async (tx) => {
    const workflowIds = (await lockFree(tx)).map((row) => row.id);
    if (workflowIds.length === 0) return;
    await tx.query(
      `update sluice.workflows set held_task = null, held_lease = null, held_worker_id = null,
         held_since = null, held_until = null
       where id = any($1::text[])`,
      [workflowIds],
    );
    await releaseHeads(tx, workflowIds, now);
  });
}
