import type { Instant, Queryable } from './database.js';

/**
 * A day's partition of inputs and of history for every day from two days ago (a task's id is made
 * before it is written) to `daysAhead` from now. Costs one look at the catalogue when all are there.
 */
export async function ensurePartitions(
  db: Queryable,
  daysAhead: number,
  now: Instant,
): Promise<void> {
  await db.query('select sluice.ensure_partitions($1, coalesce($2::timestamptz, now()))', [
    daysAhead,
    now,
  ]);
}
