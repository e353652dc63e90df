import type { Lease, TaskId, WorkerId } from '../domain/ids.js';
import type { Cost } from '../domain/queue-settings.js';
import type { Held } from '../protocol/workers-api.js';
import {
  attemptColumns,
  attemptOf,
  type AttemptTaskRow,
  type AttemptRow,
} from './find-attempts.js';
import type { Instant, Queryable } from './database.js';
import { longestGapMs } from './hearing.js';
import { costOf } from './task-row.js';

/**
 * What went wrong with attempts and workers while nobody looked. These only find: what becomes of
 * an attempt is decided above, and written fenced by its lease. All of them go by tasks_held, so
 * that they cost by what runs, whatever waits. What somebody holds locked is left for the next
 * sweep: it would hold up the write of all that was found with it.
 */

export interface BuriedWorker {
  readonly workerId: WorkerId;
  readonly silentMs: number;
}

const maxBuriedAtOnce = 1_000;

export interface Burial {
  /** The server that sweeps. */
  readonly serverId: string;
  readonly leaseMs: number;
  /** Workers whose row was locked within the lease. */
  readonly except: readonly WorkerId[];
  /** For how long its proofs came without a gap, whatever else failed meanwhile. */
  readonly steadyMs: number;
}

/** Failures that go on all the time delay what is due by so many leases, as long as the proofs have no gap. */
const mostLeases = 10;

export function isSteady(steadyMs: number, leaseMs: number): boolean {
  return steadyMs >= mostLeases * leaseMs;
}

/**
 * The silence of a worker counts only while its heartbeats could be written: by the server that sweeps, and by
 * the server that heard the worker last, both with proofs in sluice.servers. When that server has no recent
 * proof it may be gone, and its workers with it: their silence counts from its last proof.
 *
 * A heartbeat or a tick that fails starts the count again, and may fail again and again. Such failures delay the end of
 * a worker that this server heard last by `mostLeases` at most, as long as the proofs themselves succeed.
 *
 * `lapsed_unheard`: some of the silence did not count, or its server is gone. What the worker held goes back at
 * no cost, whichever server finds it. Indexes: workers_living, servers_pkey.
 */
export async function buryLapsedWorkers(
  db: Queryable,
  { serverId, leaseMs, except, steadyMs }: Burial,
  now: Instant,
): Promise<BuriedWorker[]> {
  const rows = await db.query<{ id: WorkerId; silent_ms: number }>(
    `update sluice.workers buried set status = 'dead', current_load = 0,
       lapsed_unheard = lapsed.is_unheard,
       lost_at = case when lapsed.is_unheard then null else lapsed.instant end
     from (
       select w.id, instant,
         w.last_heartbeat_at < us.hearing_since
           or coalesce(w.last_heartbeat_at < they.hearing_since or not they.is_hearing, false)
           as is_unheard
       from coalesce($3::timestamptz, now()) as instant
       cross join lateral (
         select s.hearing_since from sluice.servers s
         where s.id = $1::uuid and s.proven_at >= clock_timestamp() - $4::float8 * interval '1 ms'
       ) us
       join sluice.workers w on w.status <> 'dead'
         and w.last_heartbeat_at < instant - $2::float8 * interval '1 ms'
         and not (w.id = any($5::uuid[]))
       left join lateral (
         select s.hearing_since, s.heard_at,
           s.proven_at >= clock_timestamp() - $4::float8 * interval '1 ms' as is_hearing
         from sluice.servers s where s.id = w.heard_by
       ) they on true
       where us.hearing_since <= instant - $2::float8 * interval '1 ms' and (
           they.heard_at is null
           or case when they.is_hearing then they.hearing_since else they.heard_at end
             < instant - $2::float8 * interval '1 ms'
         )
         or $7 and w.heard_by = $1::uuid
           and w.last_heartbeat_at < instant - ${mostLeases} * $2::float8 * interval '1 ms'
       order by w.id limit $6
       for update of w skip locked
     ) lapsed
     where buried.id = lapsed.id
     returning buried.id,
       extract(epoch from lapsed.instant - buried.last_heartbeat_at)::float8 * 1000 as silent_ms`,
    [
      serverId,
      leaseMs,
      now,
      longestGapMs(leaseMs),
      except,
      maxBuriedAtOnce,
      isSteady(steadyMs, leaseMs),
    ],
  );
  return rows.map((row) => ({ workerId: row.id, silentMs: row.silent_ms }));
}

// A loose scan: one probe for each worker that holds something.
const holders = `
  holder as (
    (
      select worker_id from sluice.tasks
      where worker_id is not null order by worker_id limit 1
    )
    union all
    select following.worker_id from holder cross join lateral (
      select t.worker_id from sluice.tasks t
      where t.worker_id > holder.worker_id order by t.worker_id limit 1
    ) following
  )`;

export interface OrphanRow extends AttemptRow {
  /** Its worker could not have been heard: its loss costs no retry. */
  readonly unheard: boolean;
}

/** Held by a worker that is dead, or of which nothing is known. */
export async function findOrphans(db: Queryable, limit: number): Promise<OrphanRow[]> {
  const rows = await db.query<AttemptTaskRow & { readonly unheard: boolean }>(
    `with recursive ${holders}, gone as (
       select holder.worker_id, coalesce(w.lapsed_unheard, false) as unheard
       from holder left join lateral (
         select status, lapsed_unheard from sluice.workers where id = holder.worker_id offset 0
       ) w on true
       where w.status is null or w.status = 'dead'
       offset 0
     )
     select ${attemptColumns}, gone.unheard
     from gone cross join lateral (
       select * from sluice.tasks t
       where t.worker_id = gone.worker_id order by t.lapses_at limit $1
       for no key update skip locked
     ) task
     limit $1`,
    [limit],
  );
  return rows.map((row) => ({ ...attemptOf(row), unheard: row.unheard }));
}

/** The clock of Postgres was set forward: attempts that were claimed before that had less time. */
export interface ClockStep {
  readonly agoMs: number;
  readonly byMs: number;
}

export interface Overdue {
  /** The server that sweeps. */
  readonly serverId: string;
  readonly graceMs: number;
  readonly leaseMs: number;
  /** For so long the worker's server must have been able to write before its word is missed. */
  readonly heardForMs: number;
  /** For so long an attempt whose result its worker can't deliver is not overdue. */
  readonly undeliveredMs: number;
  /** For how long the proofs of the server that sweeps came without a gap, whatever else failed meanwhile. */
  readonly steadyMs: number;
  readonly step?: ClockStep;
}

/**
 * Executing: timed out. Its worker, which ends it by itself, gets `graceMs` to say so, and has to be heard after
 * that: a worker that is cut off may have finished the task in time. It comes back and delivers the result, or it is
 * buried after a lease. Assigned: never started.
 *
 * Not those of a worker whose server can't write, or could not until just now: the worker may have reported the end
 * there. Failures that go on and on delay it by `mostLeases` at most, as the burial of a worker. Nor those that have ended at their worker, as it says, and whose results don't arrive. These are looked up
 * in a hash: as an array of the worker, 10,000 of them cost each sweep 200 ms.
 */
export async function findOverdue(
  db: Queryable,
  limit: number,
  terms: Overdue,
  now: Instant,
): Promise<AttemptRow[]> {
  const { serverId, graceMs, leaseMs, heardForMs, undeliveredMs, steadyMs } = terms;
  const { step = { agoMs: 0, byMs: 0 } } = terms;
  const rows = await db.query<AttemptTaskRow>(
    `with recursive ${holders}, heard as (
       select holder.worker_id, w.undelivered, w.last_heartbeat_at,
         coalesce(they.is_gone or they.is_hearing, true) and not exists (
           select from sluice.servers us where us.id = $9::uuid and us.hearing_since
             > coalesce($3::timestamptz, now()) - $5::float8 * interval '1 ms'
         ) as is_heard
       from holder left join lateral (
         select heard_by, undelivered, last_heartbeat_at
         from sluice.workers where id = holder.worker_id and status <> 'dead' offset 0
       ) w on true
       left join lateral (
         select
           s.heard_at < coalesce($3::timestamptz, now()) - $4::float8 * interval '1 ms' as is_gone,
           s.proven_at >= clock_timestamp() - $6::float8 * interval '1 ms'
             and s.hearing_since
               <= coalesce($3::timestamptz, now()) - $5::float8 * interval '1 ms' as is_hearing
         from sluice.servers s where s.id = w.heard_by offset 0
       ) they on true
       -- After a step of the clock the proofs look old, until this server has seen the step.
       where not exists (
         select from sluice.servers us where us.id = $9::uuid
           and us.proven_at < clock_timestamp() - $6::float8 * interval '1 ms'
       )
     )
     select ${attemptColumns}
     from heard as holder cross join lateral (
       select * from sluice.tasks t
       where t.worker_id = holder.worker_id
         and t.lapses_at < coalesce($3::timestamptz, now())
         and (
           holder.is_heard or $11 and t.lapses_at
             < coalesce($3::timestamptz, now()) - ${mostLeases} * $4::float8 * interval '1 ms'
         )
         and (
           t.lapses_at < coalesce($3::timestamptz, now()) - $8::float8 * interval '1 ms'
           or t.assigned_at > coalesce($3::timestamptz, now()) - $7::float8 * interval '1 ms'
         )
         and (
           t.status = 'assigned'
           or t.lapses_at < coalesce($3::timestamptz, now()) - $2::float8 * interval '1 ms'
             and t.lapses_at <= holder.last_heartbeat_at - $2::float8 * interval '1 ms'
         )
         and not (
           (t.worker_id, t.id) in (select worker_id, unnest(undelivered) from heard)
           and t.lapses_at > coalesce($3::timestamptz, now()) - $10::float8 * interval '1 ms'
         )
       order by t.lapses_at limit $1
       for no key update skip locked
     ) task
     limit $1`,
    [
      limit,
      graceMs,
      now,
      leaseMs,
      heardForMs,
      longestGapMs(leaseMs),
      step.agoMs,
      step.byMs,
      serverId,
      undeliveredMs,
      isSteady(steadyMs, leaseMs),
    ],
  );
  return rows.map(attemptOf);
}

export async function findHeldBy(
  db: Queryable,
  workerId: WorkerId,
  limit: number,
): Promise<AttemptRow[]> {
  const rows = await db.query<AttemptTaskRow>(
    `select ${attemptColumns} from sluice.tasks task
     where task.worker_id = $1::uuid order by task.lapses_at limit $2`,
    [workerId, limit],
  );
  return rows.map(attemptOf);
}

/** All of it in one snapshot: a walk in pieces would miss what starts meanwhile. */
export async function listRunning(db: Queryable, now: Instant): Promise<RunningRow[]> {
  const rows = await db.query<{
    id: TaskId;
    lease: Lease;
    queue: string;
    cost: Cost | null;
    held_ms: number;
  }>(
    `select id, lease, queue, cost,
       date_part('epoch', coalesce($1::timestamptz, now()) - assigned_at) * 1000 as held_ms
     from sluice.tasks where worker_id is not null`,
    [now],
  );
  return rows.map(({ id, lease, queue, cost, held_ms: heldMs }) => ({
    taskId: id,
    lease,
    queue,
    cost: costOf(cost),
    heldMs,
  }));
}

export interface RunningRow extends Held {
  readonly queue: string;
  readonly cost: Cost;
  /** Since it was claimed. */
  readonly heldMs: number;
}
