import type { Offer } from '../domain/offer.js';
import type { WorkerGroup } from '../domain/scaling.js';
import type { LaneWaiting } from '../domain/work-waiting.js';
import type { Cost } from '../domain/queue-settings.js';
import type { Instant, Queryable } from './database.js';
import { costOf } from './task-row.js';

interface LaneRow {
  queue: string;
  task_type: string;
  capabilities: string[];
  due: number;
  cost: Cost | null;
}

/**
 * Index: tasks_line, a look for each lane and so many of its entries at most, however long the line is.
 * The cost is that of a task that comes early, which is all that an estimate needs.
 */
const countLanesSql = `
with recursive step as (
  select ''::text collate "C" as queue, ''::text collate "C" as task_type,
    '{}'::text[] collate "C" as capabilities, 0 as n
  union all
  select next.*, step.n + 1
  from step, lateral (
    select queue, task_type, capabilities
    from sluice.tasks
    where status = 'queued'
      and (queue, task_type, capabilities) > (step.queue, step.task_type, step.capabilities)
    order by queue, task_type, capabilities
    limit 1
  ) as next
  where step.n < $1
)
select step.queue, step.task_type, step.capabilities, counted.due, early.cost
from step, lateral (
  select count(*) as due from (
    select from sluice.tasks line
    where line.status = 'queued' and line.queue = step.queue
      and line.task_type = step.task_type and line.capabilities = step.capabilities
    limit $2
  ) entries
) as counted, lateral (
  select line.cost from sluice.tasks line
  where line.status = 'queued' and line.queue = step.queue
    and line.task_type = step.task_type and line.capabilities = step.capabilities
  order by line.priority, line.eligible_at, line.seq
  limit 1
) as early
where step.n > 0
order by step.n`;

/** Due tasks by lane: of so many lanes, and of each so many at most. */
export async function countLanes(
  db: Queryable,
  maxLanes: number,
  maxEach: number,
): Promise<LaneWaiting[]> {
  const rows = await db.query<LaneRow>(countLanesSql, [maxLanes, maxEach]);
  return rows.map((row) => ({
    lane: { queue: row.queue, taskType: row.task_type, capabilities: row.capabilities },
    due: row.due,
    cost: costOf(row.cost),
  }));
}

export interface ActiveGroup extends WorkerGroup {
  /** Of those that have one. */
  readonly names: readonly string[];
  /** Of these, those that hold nothing. */
  readonly idle: readonly string[];
}

interface GroupRow {
  task_types: string[] | null;
  queues: string[] | null;
  capabilities: string[];
  workers: number;
  capacity: number;
  busy: number;
  free: number;
  names: string[] | null;
  idle: string[] | null;
}

/**
 * Active workers, those that can do the same together. What they hold is counted, not what their last
 * heartbeat said: that is up to an interval old. Indexes: workers_living, tasks_held.
 */
export async function groupWorkers(db: Queryable, now: Instant): Promise<ActiveGroup[]> {
  const rows = await db.query<GroupRow>(
    `select task_types, queues, capabilities, count(*) as workers,
       sum(capacity) as capacity,
       coalesce(sum(least(held, capacity)) filter (where takes), 0) as busy,
       coalesce(sum(greatest(0, capacity - held)) filter (where takes), 0) as free,
       array_agg(name) filter (where name is not null) as names,
       array_agg(name) filter (where held = 0 and name is not null) as idle
     from (
       select w.task_types, w.queues, w.capabilities, w.capacity, w.name,
         coalesce(w.benched_until <= coalesce($1::timestamptz, now()), true) as takes,
         (select count(*)::int from sluice.tasks t where t.worker_id = w.id) as held
       from sluice.workers w
       where w.status <> 'dead' and w.status = 'active'
     ) worker
     group by task_types, queues, capabilities`,
    [now],
  );
  return rows.map(({ workers, capacity, busy, free, names, idle, ...row }) => ({
    offer: offerOf(row),
    workers,
    capacity,
    busy,
    free,
    names: names ?? [],
    idle: idle ?? [],
  }));
}

function offerOf(row: Pick<GroupRow, 'task_types' | 'queues' | 'capabilities'>): Offer {
  return { taskTypes: row.task_types, queues: row.queues, capabilities: row.capabilities };
}

export type ProvisionerKind = 'process' | 'webhook';

export interface AskingTurn {
  readonly asker: string;
  readonly provisioner: ProvisionerKind;
  readonly leaseMs: number;
  /** No other server serves: there is none to wait for. */
  readonly isAlone: boolean;
}

/** Takes the turn to ask, or renews it. False: another server asks. */
export async function takeAskingTurn(
  db: Queryable,
  { asker, provisioner, leaseMs, isAlone }: AskingTurn,
  now: Instant,
): Promise<boolean> {
  const rows = await db.query(
    `insert into sluice.scaling as s (asker, provisioner, renewed_at)
     values ($1::uuid, $2, coalesce($5::timestamptz, now()))
     on conflict (only_row) do update set
       asker = excluded.asker, provisioner = excluded.provisioner, renewed_at = excluded.renewed_at
     where s.asker = excluded.asker or $4
       or s.renewed_at < excluded.renewed_at - $3::float8 * interval '1 ms'
     returning s.asker`,
    [asker, provisioner, leaseMs, isAlone, now],
  );
  return rows.length > 0;
}

/** Null: it went well. */
export async function noteAsked(
  db: Queryable,
  asker: string,
  error: string | null,
  now: Instant,
): Promise<void> {
  await db.query(
    `update sluice.scaling set asked_at = instant, error = $2::text,
       failing_since = case when $2::text is null then null else coalesce(failing_since, instant) end
     from coalesce($3::timestamptz, now()) as instant
     where asker = $1::uuid`,
    [asker, error, now],
  );
}

/** The next one need not wait for the lease to lapse. */
export async function leaveAsking(db: Queryable, asker: string): Promise<void> {
  await db.query('delete from sluice.scaling where asker = $1::uuid', [asker]);
}

export interface Asked {
  readonly provisioner: ProvisionerKind;
  readonly askedAt: Date | null;
  readonly failingSince: Date | null;
  readonly error: string | null;
}

/** Null: no server has a provisioner, or none that did is there any more. */
export async function findAsked(
  db: Queryable,
  leaseMs: number,
  now: Instant,
): Promise<Asked | null> {
  const [row] = await db.query<{
    provisioner: ProvisionerKind;
    asked_at: Date | null;
    failing_since: Date | null;
    error: string | null;
  }>(
    `select provisioner, asked_at, failing_since, error from sluice.scaling
     where renewed_at >= coalesce($2::timestamptz, now()) - $1::float8 * interval '1 ms'`,
    [leaseMs, now],
  );
  if (row === undefined) return null;
  const { provisioner, asked_at: askedAt, failing_since: failingSince, error } = row;
  return { provisioner, askedAt, failingSince, error };
}
