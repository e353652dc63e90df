import { createHash } from 'node:crypto';
import type { Lease, TaskId, WorkerId } from '../domain/ids.js';
import type { JsonObject } from '../domain/json.js';
import { weightOf, type Offer } from '../domain/offer.js';
import { bounds } from '../protocol/bounds.js';
import type { Page, PageRequest } from '../protocol/page.js';
import type {
  Heartbeat,
  Held,
  Registration,
  WorkerDetail,
  WorkerView,
} from '../protocol/workers-api.js';
import { column, heldColumns, realOrNull, sparseColumn } from './columns.js';
import { LockedError, type Database, type Instant, type Queryable } from './database.js';
import { letGoUnlisted } from './hold-workflows.js';
import { decodeIdCursor, defaultPageLimit, encodeCursor } from './paging.js';

/** The same id again, after an answer that was lost, is the same worker. */
export async function registerWorker(
  db: Queryable,
  workerId: WorkerId,
  registration: Registration & { readonly capacity: number },
  now: Instant,
  serverId: string | null = null,
): Promise<void> {
  const offer: Offer = {
    taskTypes: namesOrAll(registration.taskTypes),
    queues: namesOrAll(registration.queues),
    capabilities: registration.capabilities ?? [],
  };
  await db.query(
    `insert into sluice.workers
       (id, name, host, version, capabilities, task_types, queues, capacity, owner,
        registered_at, last_heartbeat_at, heard_by, offer_hash, offer_weight)
     select $1::uuid, $2, $3, $4, $5::text[], $6::text[], $7::text[], $8::int, $9, instant, instant,
       $11::uuid, $12::uuid, $13::int
     from coalesce($10::timestamptz, now()) as instant
     on conflict (id) do nothing`,
    [
      workerId,
      registration.name ?? null,
      registration.host ?? null,
      registration.version ?? null,
      offer.capabilities,
      offer.taskTypes,
      offer.queues,
      registration.capacity,
      registration.owner ?? null,
      now,
      serverId,
      hashOf(offer),
      weightOf(offer),
    ],
  );
}

/** Whatever the order of the names. */
function hashOf({ taskTypes, queues, capabilities }: Offer): string {
  const normal = [taskTypes, queues, capabilities].map((names) =>
    names === null ? null : [...new Set(names)].toSorted(),
  );
  return createHash('sha256').update(JSON.stringify(normal)).digest('hex').slice(0, 32);
}

function namesOrAll(names: readonly string[] | undefined): readonly string[] | null {
  return names === undefined || names.includes('*') ? null : names;
}

export interface HeldTask {
  readonly taskId: TaskId;
  readonly lease: Lease;
  readonly assignedAt: Date;
  /** Since it was claimed, by the database's clock. */
  readonly heldMs: number;
}

export type Beat =
  | {
      readonly kind: 'known';
      readonly drainRequested: boolean;
      readonly held: readonly HeldTask[];
    }
  | { readonly kind: 'unknown' };

export interface Beating {
  readonly workerId: WorkerId;
  readonly heartbeat: Heartbeat;
}

interface BeatRow {
  worker_id: WorkerId;
  drain_requested: boolean;
  keeps_a_place: boolean;
  task_id: TaskId | null;
  lease: Lease;
  assigned_at: Date;
  held_ms: number;
}

/**
 * One row for a worker, not one per task, and one statement for many workers: a beat every 10 s costs
 * next to nothing. No indexed column changes, so the row is written in place (HOT). A worker that was
 * declared dead is not revived: its tasks may already be with others. Of the undelivered results only those of tasks
 * that it holds are kept: every sweep reads them. Indexes: workers_pkey, tasks_held, tasks_pkey.
 */
const beatSql = `
with beat as (
  update sluice.workers worker set
    status = beating.status,
    current_load = beating.current_load,
    capacity = coalesce(beating.capacity, worker.capacity),
    memory_usage = beating.memory_usage,
    event_loop_delay_ms = beating.event_loop_delay_ms,
    cpu_usage = beating.cpu_usage,
    consecutive_failures = coalesce(beating.consecutive_failures, 0),
    health = beating.health::json,
    last_heartbeat_at = coalesce($8::timestamptz, now()),
    heard_by = $9::uuid,
    undelivered = (
      select array_agg(named.id) from unnest(beating.undelivered::uuid[]) as named (id)
      where exists (
        select from sluice.tasks t where t.id = named.id and t.worker_id = worker.id
      )
    )
  from unnest(
    $1::uuid[], $2::text[], $3::int[], $4::int[], $5::float8[], $6::float8[], $7::text[], $10::text[],
    $11::real[], $12::int[]
  ) as beating (
    worker_id, status, current_load, capacity, memory_usage, event_loop_delay_ms, health, undelivered,
    cpu_usage, consecutive_failures
  )
  where worker.id = beating.worker_id and worker.status <> 'dead'
  returning worker.id, worker.drain_requested, worker.last_heartbeat_at as instant
)
select beat.id as worker_id, beat.drain_requested,
  exists (select from sluice.workflows where held_worker_id = beat.id) as keeps_a_place,
  task.id as task_id, task.lease, task.assigned_at,
  extract(epoch from beat.instant - task.assigned_at)::float8 * 1000 as held_ms
from beat left join lateral (
  select t.id, t.lease, t.assigned_at from sluice.tasks t where t.worker_id = beat.id offset 0
) task on true`;

/** For letting go of places in locked workflows. Later heartbeats wait for it; the next beat tries again. */
const lettingGoMs = 1_000;

/** In the order of the beats. Of a worker that beats twice among them the later one is kept. */
export async function beatAll(
  db: Database,
  beats: readonly Beating[],
  now: Instant,
  serverId: string | null = null,
): Promise<Beat[]> {
  // Sorted: two servers that hear the same workers wait for each other in one direction.
  const latest = [...new Map(beats.map((beat) => [beat.workerId, beat])).values()].sort(
    (one, other) => (one.workerId < other.workerId ? -1 : 1),
  );
  const rows = await db.vital.query<BeatRow>(beatSql, [
    column(latest, ({ workerId }) => workerId),
    column(latest, ({ heartbeat }) => heartbeat.status),
    column(latest, ({ heartbeat }) => heartbeat.currentLoad),
    sparseColumn(latest, ({ heartbeat }) => heartbeat.maxCapacity ?? null),
    sparseColumn(latest, ({ heartbeat }) => heartbeat.memoryUsage ?? null),
    sparseColumn(latest, ({ heartbeat }) => heartbeat.eventLoopDelayMs ?? null),
    sparseColumn(latest, ({ heartbeat: { health } }) =>
      health === undefined ? null : JSON.stringify(health),
    ),
    now,
    serverId,
    sparseColumn(latest, ({ heartbeat: { undelivered = [] } }) =>
      undelivered.length === 0 ? null : column(undelivered, (taskId) => taskId),
    ),
    sparseColumn(latest, ({ heartbeat }) => realOrNull(heartbeat.cpuUsage ?? null)),
    sparseColumn(latest, ({ heartbeat }) => heartbeat.consecutiveFailures ?? null),
  ]);
  const byWorker = new Map<WorkerId, BeatRow[]>();
  for (const row of rows) {
    const others = byWorker.get(row.worker_id);
    if (others === undefined) byWorker.set(row.worker_id, [row]);
    else others.push(row);
  }
  const beganMs = performance.now();
  for (const { workerId, heartbeat } of latest) {
    if (performance.now() - beganMs > lettingGoMs) break;
    const keepsAPlace = byWorker.get(workerId)?.[0]?.keeps_a_place === true;
    if (!keepsAPlace || heartbeat.currentTasks === undefined) continue;
    await unlessLocked(letGoUnlisted(db, workerId, heartbeat.currentTasks, now));
  }
  return beats.map(({ workerId }) => toBeat(byWorker.get(workerId)));
}

/** The next beat tries again: a workflow that somebody holds must not keep other workers waiting. */
async function unlessLocked(write: Promise<unknown>): Promise<void> {
  try {
    await write;
  } catch (error) {
    if (!(error instanceof LockedError)) throw error;
  }
}

function toBeat(rows: readonly BeatRow[] | undefined): Beat {
  const first = rows?.[0];
  if (rows === undefined || first === undefined) return { kind: 'unknown' };
  return { kind: 'known', drainRequested: first.drain_requested, held: rows.flatMap(toHeld) };
}

function toHeld(row: BeatRow): HeldTask[] {
  if (row.task_id === null) return [];
  return [
    {
      taskId: row.task_id,
      lease: row.lease,
      assignedAt: row.assigned_at,
      heldMs: row.held_ms,
    },
  ];
}

/**
 * A worker that was declared dead registers again and names what it still runs, with the leases: what a
 * worker that is dead or gone holds moves to its new id, what a living one holds does not.
 */
export async function adoptTasks(
  db: Queryable,
  workerId: WorkerId,
  held: readonly Held[],
): Promise<TaskId[]> {
  const rows = await db.query<{ id: TaskId }>(
    `update sluice.tasks t set worker_id = $1::uuid
     from unnest($2::uuid[], $3::uuid[]) as held (id, lease)
     where t.id = held.id and t.lease = held.lease and not exists (
       select from sluice.workers w where w.id = t.worker_id and w.status <> 'dead'
     )
     returning t.id`,
    [workerId, ...heldColumns(held)],
  );
  return rows.map((row) => row.id);
}

interface WorkerRow {
  id: WorkerId;
  name: string | null;
  host: string | null;
  version: string | null;
  status: 'active' | 'draining' | 'dead';
  capabilities: string[];
  task_types: string[] | null;
  queues: string[] | null;
  capacity: number;
  current_load: number;
  memory_usage: number | null;
  event_loop_delay_ms: number | null;
  cpu_usage: number | null;
  consecutive_failures: number;
  drain_requested_at: Date | null;
  registered_at: Date;
  last_heartbeat_at: Date;
  benched_until: Date | null;
  owner: string | null;
}

const columns = `id, name, host, version, status, capabilities, task_types, queues, capacity,
  current_load, memory_usage, event_loop_delay_ms, cpu_usage, consecutive_failures, drain_requested_at,
  registered_at, last_heartbeat_at, benched_until, owner`;

interface WorkerDetailRow extends WorkerRow {
  readonly health: JsonObject | null;
  readonly current_tasks: TaskId[];
}

const maxTasksShown = 100;

/** Indexes: workers_pkey, tasks_held. */
export async function findWorker(db: Queryable, workerId: WorkerId): Promise<WorkerDetail | null> {
  const [row] = await db.query<WorkerDetailRow>(
    `select ${columns}, health, array(
       select t.id from sluice.tasks t where t.worker_id = $1::uuid limit ${maxTasksShown}
     )::text[] as current_tasks
     from sluice.workers where id = $1::uuid`,
    [workerId],
  );
  if (row === undefined) return null;
  return { ...toView(row), currentTasks: row.current_tasks.toSorted(), health: row.health };
}

export interface FoundWorker {
  readonly workerId: WorkerId;
  readonly owner: string | null;
  readonly status: WorkerView['status'];
  readonly capacity: number;
}

/** Those of them that there are, dead or alive, without what they name: a heartbeat needs none of it. */
export async function findWorkers(
  db: Queryable,
  workerIds: readonly WorkerId[],
): Promise<FoundWorker[]> {
  const rows = await db.query<Pick<WorkerRow, 'id' | 'owner' | 'status' | 'capacity'>>(
    'select id, owner, status, capacity from sluice.workers where id = any($1::uuid[])',
    [workerIds],
  );
  return rows.map(({ id: workerId, ...row }) => ({ workerId, ...row }));
}

/** What these workers can do, of those that there are. Names as JSON: it is parsed faster than an array. */
export async function findOffers(
  db: Queryable,
  workerIds: readonly WorkerId[],
): Promise<ReadonlyMap<WorkerId, Offer>> {
  const rows = await db.query<Pick<WorkerRow, 'id' | 'task_types' | 'queues' | 'capabilities'>>(
    `select id, array_to_json(task_types) as task_types, array_to_json(queues) as queues,
       array_to_json(capabilities) as capabilities
     from sluice.workers where id = any($1::uuid[])`,
    [workerIds],
  );
  return new Map(
    rows.map(({ id, task_types: taskTypes, queues, capabilities }) => [
      id,
      { taskTypes, queues, capabilities },
    ]),
  );
}

/** A worker may name 10,000 types and queues: up to the one that takes the answer past 8 MiB. */
function fitting(page: string): string {
  return `select ${columns}, found from (
    select page.*, count(*) over () as found, sum(octet_length(page::text)) over (
      order by id rows between unbounded preceding and 1 preceding
    ) as bytes_before
    from (${page}) page
  ) measured where coalesce(bytes_before, 0) < ${bounds.answerBytes} order by id`;
}

export async function listWorkers(db: Queryable, page: PageRequest): Promise<Page<WorkerView>> {
  const limit = page.limit ?? defaultPageLimit;
  const rows = await db.query<WorkerRow & { found: number }>(
    fitting(`select ${columns} from sluice.workers
      where $1::uuid is null or id > $1::uuid order by id limit $2`),
    [page.cursor === undefined ? null : decodeIdCursor(page.cursor), limit],
  );
  const isFull = rows.length === limit || rows.length < (rows[0]?.found ?? 0);
  const last = isFull ? rows.at(-1) : undefined;
  return {
    items: rows.map(toView),
    nextCursor: last === undefined ? null : encodeCursor(last.id),
  };
}

/** False: there is no such worker, or it is dead. */
export async function requestDrain(
  db: Queryable,
  workerId: WorkerId,
  now: Instant,
): Promise<boolean> {
  const rows = await db.query(
    `update sluice.workers set drain_requested = true,
       drain_requested_at = coalesce(drain_requested_at, $2::timestamptz, now())
     where id = $1::uuid and status <> 'dead' returning id`,
    [workerId, now],
  );
  return rows.length > 0;
}

/** A worker that says goodbye. What it still holds is given back by whoever calls this. */
export async function buryWorker(db: Queryable, workerId: WorkerId): Promise<boolean> {
  const rows = await db.query(
    `update sluice.workers set status = 'dead', current_load = 0
     where id = $1::uuid and status <> 'dead' returning id`,
    [workerId],
  );
  return rows.length > 0;
}

export type BenchOutcome =
  | { readonly kind: 'benched'; readonly until: Date }
  /** It was benched before, or is dead. */
  | { readonly kind: 'already' }
  /** Nobody of those who succeed is left. */
  | { readonly kind: 'no witness' };

/** Two that accuse each other are not both benched, unless in the same moment. */
export async function benchWorker(
  db: Queryable,
  workerId: WorkerId,
  witnesses: readonly WorkerId[],
  benchMs: number,
  now: Instant,
): Promise<BenchOutcome> {
  const [row] = await db.query<{ is_witnessed: boolean; benched_until: Date | null }>(
    `with evidence as (
       select exists (
         select from sluice.workers
         where id = any($2::uuid[]) and status = 'active' and benched_until is null
       ) as is_witnessed
     ), benched as (
       update sluice.workers set benched_until = instant + $3::float8 * interval '1 ms'
       from evidence, coalesce($4::timestamptz, now()) as instant
       where evidence.is_witnessed and id = $1::uuid and status <> 'dead'
         and (benched_until is null or benched_until <= instant)
       returning benched_until
     )
     select evidence.is_witnessed, benched.benched_until
     from evidence left join benched on true`,
    [workerId, witnesses, benchMs, now],
  );
  if (row?.is_witnessed !== true) return { kind: 'no witness' };
  const until = row.benched_until;
  return until === null ? { kind: 'already' } : { kind: 'benched', until };
}

export async function trustWorker(db: Queryable, workerId: WorkerId): Promise<void> {
  await db.query(
    `update sluice.workers set benched_until = null
     where id = $1::uuid and benched_until is not null`,
    [workerId],
  );
}

export interface BenchedWorker {
  readonly workerId: WorkerId;
  readonly benchedUntil: Date;
}

const maxBenchedRead = 10_000;

/** Also those that are tried again. Index: workers_benched, which is nearly always empty. */
export async function findBenched(db: Queryable): Promise<BenchedWorker[]> {
  const rows = await db.query<{ id: WorkerId; benched_until: Date }>(
    `select id, benched_until from sluice.workers
     where benched_until is not null and status <> 'dead' order by id limit $1`,
    [maxBenchedRead],
  );
  return rows.map((row) => ({ workerId: row.id, benchedUntil: row.benched_until }));
}

/** Those that get nothing now, the longest first, and how many there are. Index: workers_benched. */
export async function findSuspendedWorkers(
  db: Queryable,
  limit: number,
  now: Instant,
): Promise<{ readonly items: readonly WorkerView[]; readonly totalCount: number }> {
  const rows = await db.query<WorkerRow & { found: number }>(
    fitting(`select ${columns} from sluice.workers
      where benched_until > coalesce($1::timestamptz, now()) and benched_until is not null
        and status <> 'dead' order by id limit ${maxBenchedRead}`),
    [now],
  );
  const longestFirst = rows.toSorted((a, b) => Number(b.benched_until) - Number(a.benched_until));
  return { items: longestFirst.slice(0, limit).map(toView), totalCount: rows.length };
}

export interface WorkerCounts {
  readonly active: number;
  readonly draining: number;
  readonly dead: number;
  readonly totalCapacity: number;
  readonly usedCapacity: number;
}

/** The dead count for an hour. */
export async function countWorkers(db: Queryable, now: Instant): Promise<WorkerCounts> {
  const [row] = await db.query<{
    active: number;
    draining: number;
    dead: number;
    total_capacity: number;
    used_capacity: number;
  }>(
    `select count(*) filter (where status = 'active') as active,
       count(*) filter (where status = 'draining') as draining,
       count(*) filter (
         where status = 'dead'
           and last_heartbeat_at > coalesce($1::timestamptz, now()) - interval '1 hour'
       ) as dead,
       coalesce(sum(capacity) filter (where status <> 'dead'), 0) as total_capacity,
       coalesce(sum(current_load) filter (where status <> 'dead'), 0) as used_capacity
     from sluice.workers`,
    [now],
  );
  if (row === undefined) throw new Error('an aggregate without groups answered no row');
  return {
    active: row.active,
    draining: row.draining,
    dead: row.dead,
    totalCapacity: row.total_capacity,
    usedCapacity: row.used_capacity,
  };
}

const maxPurgedAtOnce = 1_000;

/**
 * The dead that nobody needs to see any more, those that registered first before others. One that
 * still holds a task must stay: see orphans. Index: workers_dead.
 */
export async function purgeWorkers(
  db: Queryable,
  olderThanMs: number,
  now: Instant,
): Promise<WorkerId[]> {
  const rows = await db.query<{ id: WorkerId }>(
    `delete from sluice.workers
     where id = any(array(
       select w.id from sluice.workers w
       where w.status = 'dead'
         and w.last_heartbeat_at
           < coalesce($2::timestamptz, now()) - $1::float8 * interval '1 ms'
         and not exists (select from sluice.tasks t where t.worker_id = w.id)
       order by w.id limit $3
       for update skip locked
     ))
     returning id`,
    [olderThanMs, now, maxPurgedAtOnce],
  );
  return rows.map((row) => row.id);
}

function toView(row: WorkerRow): WorkerView {
  return {
    workerId: row.id,
    name: row.name,
    host: row.host,
    version: row.version,
    status: row.status,
    capabilities: row.capabilities,
    taskTypes: row.task_types,
    queues: row.queues,
    capacity: row.capacity,
    currentLoad: row.current_load,
    availableCapacity: row.status === 'active' ? Math.max(0, row.capacity - row.current_load) : 0,
    memoryUsage: row.memory_usage,
    eventLoopDelayMs: row.event_loop_delay_ms,
    cpuUsage: row.cpu_usage,
    consecutiveFailures: row.consecutive_failures,
    drainRequestedAt: row.drain_requested_at,
    registeredAt: row.registered_at,
    lastHeartbeatAt: row.last_heartbeat_at,
    benchedUntil: row.benched_until,
  };
}
