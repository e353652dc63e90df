import type { WorkerId } from '../domain/ids.js';
import type { WorkerGroup } from '../domain/workforce.js';
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

/** Active workers that can do the same. */
export interface CountedGroup extends WorkerGroup {
  /** The same for all of them. */
  readonly offerKey: string;
  /** What their names take in memory, about. */
  readonly offerWeight: number;
  /** One of them, with whose row their offer can be read. */
  readonly example: WorkerId;
  /** Of them, those that are not suspended. */
  readonly taking: number;
  /** Of these, those that were not full at their last heartbeat. */
  readonly notFull: number;
  /** When the first of the suspended ones gets work again. */
  readonly suspendedUntil: Date | null;
  /** Of those that have one. */
  readonly names: readonly string[];
  /** Of these, those that hold nothing. */
  readonly idle: readonly string[];
}

interface GroupRow {
  offer_key: string;
  offer_weight: number;
  example: WorkerId;
  last: WorkerId;
  workers: number;
  capacity: number;
  taking: number;
  not_full: number;
  suspended_until: Date | null;
  busy: number;
  free: number;
  names: string[] | null;
  idle: string[] | null;
}

/**
 * What they hold is counted, not what their last heartbeat said: that is up to an interval old. What they name is not
 * read. Indexes: workers_living, tasks_held.
 */
const countGroupsSql = `
select coalesce(offer_hash, id) as offer_key, max(offer_weight) as offer_weight,
  min(id::text) as example, max(id::text) as last,
  count(*) as workers, sum(capacity) as capacity,
  count(*) filter (where takes) as taking,
  count(*) filter (where takes and current_load < capacity) as not_full,
  min(benched_until) filter (where not takes) as suspended_until,
  coalesce(sum(least(held, capacity)) filter (where takes), 0) as busy,
  coalesce(sum(greatest(0, capacity - held)) filter (where takes), 0) as free,
  array_agg(name) filter (where name is not null) as names,
  array_agg(name) filter (where held = 0 and name is not null) as idle
from (
  select w.id, w.offer_hash, w.offer_weight, w.capacity, w.current_load, w.name, w.benched_until,
    coalesce(w.benched_until <= coalesce($1::timestamptz, now()), true) as takes,
    (select count(*)::int from sluice.tasks t where t.worker_id = w.id) as held
  from sluice.workers w
  where w.status <> 'dead' and w.status = 'active' and ($2::uuid is null or w.id > $2)
  order by w.id limit $3
) worker
group by 1`;

/** Active workers in portions, by what they can do. A group may have workers in several portions. */
export async function countGroups(
  db: Queryable,
  { after, limit }: { readonly after: WorkerId | null; readonly limit: number },
  now: Instant,
): Promise<{ readonly groups: readonly CountedGroup[]; readonly next: WorkerId | null }> {
  const rows = await db.query<GroupRow>(countGroupsSql, [now, after, limit]);
  const isFull = rows.reduce((sum, { workers }) => sum + workers, 0) === limit;
  const last = rows.reduce<WorkerId | null>(
    (most, row) => (most === null || row.last > most ? row.last : most),
    null,
  );
  return { groups: rows.map(toGroup), next: isFull ? last : null };
}

function toGroup(row: GroupRow): CountedGroup {
  const { workers, capacity, taking, busy, free, example } = row;
  return {
    ...{ workers, capacity, taking, busy, free, example },
    offerKey: row.offer_key,
    offerWeight: row.offer_weight,
    notFull: row.not_full,
    suspendedUntil: row.suspended_until,
    names: row.names ?? [],
    idle: row.idle ?? [],
  };
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
