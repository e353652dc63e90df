import type { Queryable } from './database.js';

/** Tasks that wait for a time; index: tasks_timed. */
export async function countScheduled(db: Queryable): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    `select count(*) as count from sluice.tasks where waits_for = 'time'`,
  );
  return row?.count ?? 0;
}

/** Counted up to here, each: 100,000 index entries take 20 ms. */
const mostCounted = 100_000;

export interface HeldAndEnded {
  readonly assigned: number;
  readonly executing: number;
  readonly deadLetter: number;
  readonly failed: number;
}

/**
 * Tasks that workers hold, and tasks that ended badly and are kept, each counted up to a bound.
 * Indexes: tasks_held, tasks_assigned, tasks_ended, tasks_dead_by_queue; no row is read.
 */
const countHeldAndEndedSql = `
select
  (select count(*) from (
    select from sluice.tasks where worker_id is not null limit $1::integer
  ) one)::integer as held,
  (select count(*) from (
    select from sluice.tasks where status = 'assigned' limit $1::integer
  ) one)::integer as assigned,
  (select count(*) from (
    select from sluice.tasks where status in ('dead_letter', 'failed') limit $1::integer
  ) one)::integer as ended,
  (select count(*) from (
    select from sluice.tasks where status = 'dead_letter' limit $1::integer
  ) one)::integer as dead`;

export async function countHeldAndEnded(db: Queryable): Promise<HeldAndEnded> {
  const [row] = await db.query<{ held: number; assigned: number; ended: number; dead: number }>(
    countHeldAndEndedSql,
    [mostCounted],
  );
  if (row === undefined) throw new Error('a query of counts answered no row');
  return {
    assigned: row.assigned,
    executing: Math.max(0, row.held - row.assigned),
    deadLetter: row.dead,
    failed: Math.max(0, row.ended - row.dead),
  };
}
