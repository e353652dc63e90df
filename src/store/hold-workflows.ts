import type { Lease, TaskId, WorkerId } from '../domain/ids.js';
import type { Database, Instant, Queryable } from './database.js';
import { lockWorkflows, releaseHeads } from './release-heads.js';

/**
 * A member that is cancelled while it runs keeps its workflow's place (see cancel-tasks): its
 * worker may still be at it. These are the three ways to learn that it no longer is.
 */

/** The lease of the cancelled attempt tells one keeping of the place from the next. */
interface KeptRow {
  readonly id: string;
  readonly held_lease: Lease;
}

/** Index: workflows_held_lease. "offset 0" keeps the planner from reading all workflows instead. */
const findByLeaseSql = `
select kept.id, kept.held_lease
from
  unnest($1::uuid[]) as gone (lease),
  lateral (
    select id, held_lease from sluice.workflows
    where held_lease = gone.lease
    offset 0
  ) as kept`;

/** The worker reported or released with the lease it had lost. */
export async function letGoOfCancelled(
  db: Database,
  leases: readonly Lease[],
  now: Instant,
): Promise<void> {
  await letGo(db, await db.query<KeptRow>(findByLeaseSql, [leases]), now);
}

/** A claim that is younger than a heartbeat may still be on its way to the worker. */
const claimOnItsWayMs = 15_000;

/** Index: workflows_held_worker. */
const findUnlistedSql = `
select kept.id, kept.held_lease
from
  (select $1::uuid as worker_id) as beating,
  lateral (
    select id, held_lease, held_task, held_since from sluice.workflows
    where held_worker_id = beating.worker_id
    offset 0
  ) as kept
where kept.held_task <> all($2::uuid[])
  and kept.held_since < coalesce($4::timestamptz, now()) - $3::float8 * interval '1 ms'`;

/** The worker names what it runs, and this is not in it. */
export async function letGoUnlisted(
  db: Database,
  workerId: WorkerId,
  listed: readonly TaskId[],
  now: Instant,
): Promise<void> {
  const parameters = [workerId, listed, claimOnItsWayMs, now];
  await letGo(db, await db.query<KeptRow>(findUnlistedSql, parameters), now);
}

/** Index: workflows_held. */
const lockOverdueSql = `
select id, held_lease from sluice.workflows
where held_task is not null
  and held_until < coalesce($3::timestamptz, now()) - $2::float8 * interval '1 ms'
order by held_until limit $1
for update skip locked`;

/** Index: workflows_held_worker, one probe for each worker, however many places it keeps. */
const lockOrphanedSql = `
with recursive holder as (
  (
    select held_worker_id from sluice.workflows
    where held_worker_id is not null order by held_worker_id limit 1
  )
  union all
  select following.held_worker_id from holder cross join lateral (
    select f.held_worker_id from sluice.workflows f
    where f.held_worker_id > holder.held_worker_id
    order by f.held_worker_id limit 1
  ) following
), dead as (
  select held_worker_id from holder
  where not exists (
    select from sluice.workers w where w.id = holder.held_worker_id and w.status <> 'dead'
  )
  offset 0
)
select kept.id, kept.held_lease
from dead cross join lateral (
  select f.id, f.held_lease from sluice.workflows f
  where f.held_worker_id = dead.held_worker_id
  limit $1
  for update skip locked
) kept
limit $1`;

/**
 * The attempt would have timed out by now, or its worker is dead. A worker counts the time from when
 * the task reached it, so it gets `graceMs` more, as for any other attempt that is overdue.
 */
export function freeHeldWorkflows(
  db: Database,
  limit: number,
  graceMs: number,
  now: Instant,
): Promise<void> {
  return db.transaction(async (tx) => {
    const overdue = await tx.query<KeptRow>(lockOverdueSql, [limit, graceMs, now]);
    const orphaned = await tx.query<KeptRow>(lockOrphanedSql, [limit]);
    const kept = [...overdue, ...orphaned];
    if (kept.length > 0) await free(tx, kept, now);
  });
}

async function letGo(db: Database, kept: readonly KeptRow[], now: Instant): Promise<void> {
  if (kept.length > 0) await db.transaction((tx) => free(tx, kept, now));
}

/** By the lease: until the lock was granted the place may have been freed, and kept for another. */
async function free(tx: Queryable, kept: readonly KeptRow[], now: Instant): Promise<void> {
  const workflowIds = kept.map((row) => row.id);
  await lockWorkflows(tx, workflowIds);
  await tx.query(
    `update sluice.workflows set held_task = null, held_lease = null, held_worker_id = null,
       held_since = null, held_until = null
     where id = any($1::text[]) and held_lease = any($2::uuid[])`,
    [workflowIds, kept.map((row) => row.held_lease)],
  );
  await releaseHeads(tx, workflowIds, now);
}
