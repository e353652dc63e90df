import type { RateLimit } from '../domain/queue-settings.js';
import type { Database, Queryable } from './database.js';

interface LimitRow {
  name: string;
  unit: string;
  rate: number;
  per_seconds: number;
  burst: number | null;
}

interface VersionedRow extends LimitRow {
  version: number;
}

export interface NamedLimit extends RateLimit {
  readonly name: string;
}

const columns = 'name, unit, rate, per_seconds, burst';

export async function listLimits(db: Queryable): Promise<NamedLimit[]> {
  const rows = await db.query<LimitRow>(`select ${columns} from sluice.limits order by name`);
  return rows.map(toView);
}

export async function findLimit(db: Queryable, name: string): Promise<NamedLimit | null> {
  const [row] = await db.query<LimitRow>(`select ${columns} from sluice.limits where name = $1`, [
    name,
  ]);
  return row === undefined ? null : toView(row);
}

/** For a change that says what was there before: nobody else changes it meanwhile. */
export async function lockLimit(tx: Queryable, name: string): Promise<NamedLimit | null> {
  const [row] = await tx.query<LimitRow>(
    `select ${columns} from sluice.limits where name = $1 for update`,
    [name],
  );
  return row === undefined ? null : toView(row);
}

export interface LimitChanged {
  readonly name: string;
  /** Whoever holds a greater one ignores a smaller one. */
  readonly version: number;
  readonly limit: RateLimit;
}

/** All, or those that were put since. Index: limits_changed. */
export async function findLimitsChanged(
  db: Queryable,
  since: Date | null,
): Promise<LimitChanged[]> {
  const rows = await db.query<VersionedRow>(
    `select ${columns}, version from sluice.limits
     where changed_at >= coalesce($1::timestamptz, '-infinity')`,
    [since],
  );
  return rows.map(toChanged);
}

export async function findLimitsNamed(
  db: Queryable,
  names: readonly string[],
): Promise<LimitChanged[]> {
  const rows = await db.query<VersionedRow>(
    `select ${columns}, version from sluice.limits where name = any($1::text[])`,
    [names],
  );
  return rows.map(toChanged);
}

/**
 * One at a time, by a lock that is taken before the version is: a put that waited for another, or
 * for a delete, would go in with a version from before its wait.
 */
export async function putLimit(
  db: Queryable,
  name: string,
  limit: RateLimit,
): Promise<NamedLimit & { readonly version: number }> {
  const [row] = await db.query<VersionedRow>(
    `insert into sluice.limits (name, version, unit, rate, per_seconds, burst)
     select $1, nextval('sluice.limit_version'), $2, $3::bigint, $4::int, $5::bigint
     from (select pg_advisory_xact_lock(hashtext('sluice.limits')) offset 0) as turn
     on conflict (name) do update set
       version = excluded.version, changed_at = now(), unit = excluded.unit,
       rate = excluded.rate, per_seconds = excluded.per_seconds, burst = excluded.burst
     returning ${columns}, version`,
    [name, limit.unit, limit.rate, limit.perSeconds, limit.burst],
  );
  if (row === undefined) throw new Error(`limit ${name} was neither inserted nor updated`);
  return { ...toView(row), version: row.version };
}

export type LimitDeleted =
  /** Whoever holds a greater version ignores it: the limit was put again. */
  | { readonly kind: 'deleted'; readonly version: number }
  | { readonly kind: 'missing' }
  | { readonly kind: 'in_use' };

/** `also` is done in the same transaction, with what was deleted. */
export function deleteLimit(
  db: Database,
  name: string,
  also: (tx: Queryable, limit: RateLimit) => Promise<void> = async () => undefined,
): Promise<LimitDeleted> {
  return db.transaction(async (tx) => {
    // First the lock that putQueue shares, then, in a statement of its own, the look at the
    // queues: it sees every queue that was put with this limit before.
    const limit = await lockLimit(tx, name);
    if (limit === null) return { kind: 'missing' };
    const [deleted] = await tx.query<{ version: number }>(
      `delete from sluice.limits
       where name = $1 and not exists (
         select from sluice.queues q cross join json_array_elements(q.limits) used
         where used ->> 'use' = $1
       )
       returning version`,
      [name],
    );
    if (deleted === undefined) return { kind: 'in_use' };
    await also(tx, limit);
    return { kind: 'deleted', version: deleted.version };
  });
}

export async function unknownLimits(db: Queryable, names: readonly string[]): Promise<string[]> {
  const rows = await db.query<{ name: string }>(
    `select distinct name from unnest($1::text[]) as name
     where not exists (select from sluice.limits l where l.name = name.name)
     order by name`,
    [names],
  );
  return rows.map((row) => row.name);
}

function toChanged(row: VersionedRow): LimitChanged {
  return { name: row.name, version: row.version, limit: toLimit(row) };
}

function toView(row: LimitRow): NamedLimit {
  return { name: row.name, ...toLimit(row) };
}

function toLimit(row: LimitRow): RateLimit {
  const { unit, rate, per_seconds: perSeconds, burst } = row;
  return { unit, rate, perSeconds, burst };
}
