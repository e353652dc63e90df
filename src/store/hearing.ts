import type { WorkerId } from '../domain/ids.js';
import type { Instant, Queryable } from './database.js';

/** Longer apart, two proofs of a server leave a gap in which heartbeats may have been lost. */
export function longestGapMs(leaseMs: number): number {
  return leaseMs / 4;
}

export interface Proof {
  readonly serverId: string;
  readonly leaseMs: number;
  /** False: a heartbeat was lost since the last proof, so the uninterrupted time starts again. */
  readonly continues: boolean;
}

export interface Proven {
  /** For how long this server has been able to write heartbeats, without a gap. */
  readonly hearingMs: number;
  /** Since this server's last proof, by the clock of Postgres; null: this is the first one. */
  readonly sinceLastMs: number | null;
  /** Silent workers whose row is locked: their heartbeats could not be written. */
  readonly locked: readonly WorkerId[];
}

/**
 * Takes the locks that a heartbeat takes on the tables it reads and writes, on no row of them, and writes a row
 * of its own: it fails when heartbeats fail, on a lock, a full pool, a full disk. A heartbeat with a key is
 * refused while the keys can't be read. A step of Postgres's clock
 * counts as a gap. Rows are locked `for share`, so that the proofs of several servers don't meet as locks. Indexes: workers_pkey, tasks_held, workflows_held_worker, workers_living.
 */
const proveSql = `
with beat as (
  update sluice.workers set last_heartbeat_at = last_heartbeat_at where id = $1::uuid returning id
), read as (
  select
    exists (select from sluice.tasks where worker_id = $1::uuid),
    exists (select from sluice.workflows where held_worker_id = $1::uuid),
    exists (select from sluice.api_keys)
), silent as materialized (
  select id from sluice.workers
  where status <> 'dead'
    and last_heartbeat_at < coalesce($2::timestamptz, now()) - $4::float8 / 2 * interval '1 ms'
), writable as materialized (
  select w.id from sluice.workers w where w.id = any(array(select id from silent))
  for share skip locked
), before as materialized (
  select proven_at from sluice.servers where id = $1::uuid
), proof as (
  insert into sluice.servers as server (id, hearing_since, heard_at, proven_at)
  select $1::uuid, instant, instant, clock_timestamp()
  from read, coalesce($2::timestamptz, now()) as instant
  on conflict (id) do update set
    hearing_since = case
      when $3 and clock_timestamp() between server.proven_at
        and server.proven_at + $5::float8 * interval '1 ms'
      then server.hearing_since
      else excluded.hearing_since
    end,
    heard_at = excluded.heard_at,
    proven_at = excluded.proven_at
  returning extract(epoch from heard_at - hearing_since)::float8 * 1000 as hearing_ms
)
select proof.hearing_ms,
  (select extract(epoch from clock_timestamp() - proven_at)::float8 * 1000 from before)
    as since_last_ms,
  array(select id::text from silent except select id::text from writable) as locked
from proof`;

export async function proveHearing(
  db: Queryable,
  { serverId, leaseMs, continues }: Proof,
  now: Instant,
): Promise<Proven> {
  const [row] = await db.query<{
    hearing_ms: number;
    since_last_ms: number | null;
    locked: WorkerId[];
  }>(proveSql, [serverId, now, continues, leaseMs, longestGapMs(leaseMs)]);
  if (row === undefined) throw new Error('an insert without a condition answered no row');
  return { hearingMs: row.hearing_ms, sinceLastMs: row.since_last_ms, locked: row.locked };
}

/** Whether another server, of any kind, has proven lately that it can write. */
export async function isAnotherHearing(
  db: Queryable,
  serverId: string,
  leaseMs: number,
): Promise<boolean> {
  const others = await db.query(
    `select from sluice.servers
     where id <> $1::uuid and proven_at >= clock_timestamp() - $2::float8 * interval '1 ms' limit 1`,
    [serverId, longestGapMs(leaseMs)],
  );
  return others.length > 0;
}

/** Servers that ended, once the silence of all their workers has counted. */
export async function purgeServers(
  db: Queryable,
  olderThanMs: number,
  now: Instant,
): Promise<void> {
  await db.query(
    `delete from sluice.servers
     where heard_at < coalesce($2::timestamptz, now()) - $1::float8 * interval '1 ms'`,
    [olderThanMs, now],
  );
}
