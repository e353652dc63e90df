import type { Instant, Queryable } from './database.js';

/** How many went. An expired key is free to be taken again before that. */
export async function purgeKeys(db: Queryable, limit: number, now: Instant): Promise<number> {
  const rows = await db.query(
    `delete from sluice.idempotency_keys
     where ctid = any(array(
       select ctid from sluice.idempotency_keys
       where expires_at <= coalesce($2::timestamptz, now())
       order by expires_at limit $1 for update skip locked
     ))
     returning key`,
    [limit, now],
  );
  return rows.length;
}
