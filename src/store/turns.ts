import type { Instant, Queryable } from './database.js';

export interface Turn {
  /** What is done by one server at a time. */
  readonly name: string;
  readonly holder: string;
  readonly leaseMs: number;
}

/** Takes or renews a turn. False: another server holds it. */
export async function takeTurn(
  db: Queryable,
  { name, holder, leaseMs }: Turn,
  now: Instant,
): Promise<boolean> {
  const rows = await db.query(
    `insert into sluice.turns as known (name, holder, renewed_at)
     values ($1, $2::uuid, coalesce($4::timestamptz, now()))
     on conflict (name) do update set holder = excluded.holder, renewed_at = excluded.renewed_at
     where known.holder = excluded.holder
       or known.renewed_at < excluded.renewed_at - $3::float8 * interval '1 ms'
     returning known.name`,
    [name, holder, leaseMs, now],
  );
  return rows.length > 0;
}

/** The next server need not wait for the lease to lapse. */
export async function leaveTurn(db: Queryable, name: string, holder: string): Promise<void> {
  await db.query('delete from sluice.turns where name = $1 and holder = $2::uuid', [name, holder]);
}
