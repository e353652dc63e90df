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

/**
 * Silent for longer than they could have been heard: not their fault. It is written down, since any
 * server may find what they held. Index: workers_living.
 */
export async function buryLapsedWorkers(
  db: Queryable,
  leaseMs: number,
  heardForMs: number,
  now: Instant,
): Promise<BuriedWorker[]> {
  const rows = await db.query<{ id: WorkerId; silent_ms: number }>(
    `update sluice.workers set status = 'dead', current_load = 0,
       lapsed_unheard = last_heartbeat_at < instant - $2::float8 * interval '1 ms'
     from coalesce($3::timestamptz, now()) as instant
     where id = any(array(
       select id from sluice.workers
       where status <> 'dead'
         and last_heartbeat_at < coalesce($3::timestamptz, now()) - $1::float8 * interval '1 ms'
       order by id limit $4
       for update skip locked
     ))
     returning id, extract(epoch from instant - last_heartbeat_at)::float8 * 1000 as silent_ms`,
    [leaseMs, heardForMs, now, maxBuriedAtOnce],
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

/**
 * Executing: timed out; its worker, which ends it by itself, gets `graceMs` to say so. Assigned:
 * never started.
 */
export async function findOverdue(
  db: Queryable,
  limit: number,
  graceMs: number,
  now: Instant,
): Promise<AttemptRow[]> {
  const rows = await db.query<AttemptTaskRow>(
    `with recursive ${holders}
     select ${attemptColumns}
     from holder cross join lateral (
       select * from sluice.tasks t
       where t.worker_id = holder.worker_id
         and t.lapses_at < coalesce($3::timestamptz, now())
         and (
           t.status = 'assigned'
           or t.lapses_at < coalesce($3::timestamptz, now()) - $2::float8 * interval '1 ms'
         )
       order by t.lapses_at limit $1
       for no key update skip locked
     ) task
     limit $1`,
    [limit, graceMs, now],
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
