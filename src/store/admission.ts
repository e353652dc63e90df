import {
  allQueues,
  ceilingOfQueue,
  type Ceiling,
  type Need,
  type Standing,
} from '../domain/admission.js';
import { column } from './columns.js';
import type { Database, Instant, Queryable } from './database.js';

/** What is let in: the ceiling of all queues, and those of queues as far as they are known here. */
export interface Ceilings {
  /** Null: there is none. */
  readonly all: Ceiling | null;
  /** Of the queue itself; null: it has none. */
  readonly maxActiveOf: (queue: string) => number | null;
  /** Whether one was reached a moment ago: then it is worth a look before anything is written. */
  readonly isNear: () => boolean;
  readonly noteReached: () => void;
}

export const noCeilings: Ceilings = {
  all: null,
  maxActiveOf: () => null,
  isNear: () => false,
  noteReached: () => undefined,
};

/** A need, and what the ceiling of its queue is thought to be. */
export interface Needed extends Need {
  readonly maxActive: number | null;
}

export function neededColumns(needs: readonly Needed[]): unknown[] {
  return [
    column(needs, ({ scope }) => scope),
    column(needs, ({ mostBefore }) => mostBefore),
    column(needs, ({ maxActive }) => maxActive),
  ];
}

/** Others took the room between the look and the count. Nothing was written. */
export function isOverfull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'SL429';
}

export interface StandingRow extends Standing {
  /** Of the queue; null: it has none, or this is all queues. */
  readonly maxActive: number | null;
  readonly ended: number;
}

/** By primary key, the latest of each. Scopes that are not counted are left out. */
const readStandingsSql = `
select a.scope, a.max_active, a.admitted, sluice.ended_in(a.scope) as ended
from unnest($1::text[]) as wanted (scope)
cross join lateral (
  select scope, max_active, admitted from sluice.admission
  where scope = wanted.scope
  order by epoch desc limit 1
) a`;

export async function readStandings(
  db: Queryable,
  scopes: readonly string[],
  all: Ceiling | null,
): Promise<Map<string, StandingRow>> {
  const rows = await db.query<{
    scope: string;
    max_active: number | null;
    admitted: number;
    ended: number;
  }>(readStandingsSql, [scopes]);
  return new Map(
    rows.map(({ scope, max_active: maxActive, admitted, ended }) => {
      const ceiling = scope === allQueues ? all : ceilingIn(maxActive, all);
      return [scope, { maxActive, active: admitted - ended, ended, ceiling }];
    }),
  );
}

/** Without a ceiling for all, a queue's own counts for every priority alike. */
export function ceilingIn(maxActive: number | null, all: Ceiling | null): Ceiling | null {
  if (maxActive === null) return null;
  return all === null
    ? { high: maxActive, medium: maxActive, low: maxActive }
    : ceilingOfQueue(maxActive, all);
}

/**
 * The last statement of a transaction, since everybody waits for its row until that commits. If this
 * process were frozen before it says so, the transaction would be given up soon.
 */
const countLastSql = `
select set_config('idle_in_transaction_session_timeout', '5s', true), case when $1 then
  sluice.count_admitted($2::text[], $3::text[], $4::bigint[], $5::integer[])
else
  sluice.count_ended($2::text[])
end`;

/** Without needs, whatever the ceilings are. */
export async function countAdmitted(
  tx: Queryable,
  queues: readonly string[],
  needs: readonly Needed[] | null,
): Promise<void> {
  if (queues.length === 0) return;
  const columns = needs === null ? [null, null, null] : neededColumns(needs);
  await tx.query(countLastSql, [true, queues, ...columns]);
}

export async function countEnded(tx: Queryable, queues: readonly string[]): Promise<void> {
  if (queues.length > 0) await tx.query(countLastSql, [false, queues, null, null, null]);
}

/**
 * Begins or ends to count a queue by itself. Whoever changed counts before has committed, and
 * whoever does later finds the row: so what is counted then misses nothing.
 */
export async function setCeiling(
  db: Database,
  queue: string,
  maxActive: number | null,
): Promise<void> {
  if (maxActive === null) {
    await removeCeiling(db, queue);
    return;
  }
  if (await changeCeiling(db, queue, maxActive)) return;
  await db.transaction(async (tx) => {
    await tx.run('lock table sluice.admission, sluice.departures in share row exclusive mode');
    if (await changeCeiling(tx, queue, maxActive)) return;
    await tx.query(
      `with slots as (
         insert into sluice.departures (scope, slot)
         select $1, slot from generate_series(0, 7) as slot
       )
       insert into sluice.admission (scope, max_active) values ($1, $2::integer)`,
      [queue, maxActive],
    );
  });
  await reconcileAdmission(db, queue);
}

async function changeCeiling(db: Queryable, queue: string, maxActive: number): Promise<boolean> {
  const known = await db.query(
    'update sluice.admission set max_active = $2::integer where scope = $1 returning scope',
    [queue, maxActive],
  );
  return known.length > 0;
}

async function removeCeiling(db: Queryable, queue: string): Promise<void> {
  await db.query(
    `with gone as (delete from sluice.admission where scope = $1 returning scope)
     delete from sluice.departures where scope = any(array(select scope from gone))`,
    [queue],
  );
}

export interface Drift {
  readonly scope: string;
  /** How many more were active than counted. */
  readonly by: number;
}

/**
 * Counts the tasks in the same snapshot as the counts, and adds the difference to whatever the
 * counts are by then. It reads every task: in a transaction that may scan the table.
 */
const reconcileSql = `
with active as materialized (
  select queue, count(*) as n from sluice.tasks
  where ended_at is null and ($1::text is null or queue = $1)
  group by queue
), drift as (
  select a.scope, coalesce(counted.n, 0) - (a.admitted - sluice.ended_in(a.scope)) as by
  from sluice.admission a
  left join (
    select queue as scope, n from active
    union all
    select '', coalesce(sum(n), 0)::bigint from active where $1::text is null
  ) counted on counted.scope = a.scope
  where $1::text is null or a.scope = $1
), ordered as materialized (
  select scope, by from drift where by <> 0 order by scope
)
update sluice.admission a set admitted = a.admitted + ordered.by
from ordered
where a.scope = ordered.scope
returning a.scope, ordered.by`;

/** What was wrong and is right now; of one queue, or of all that is counted. */
export function reconcileAdmission(db: Database, queue: string | null = null): Promise<Drift[]> {
  return db.transaction(async (tx) => {
    await tx.run('set local enable_seqscan = on; set local enable_hashjoin = on');
    return tx.query<Drift>(reconcileSql, [queue]);
  });
}

/** False: somebody compared a moment ago. Of several servers one gets true. */
export async function beginReconciling(
  db: Queryable,
  intervalMs: number,
  now: Instant,
): Promise<boolean> {
  const rows = await db.query(
    `update sluice.admission_check set checked_at = coalesce($2::timestamptz, now())
     where only_row
       and checked_at < coalesce($2::timestamptz, now()) - $1::float8 * interval '1 ms'
     returning only_row`,
    [intervalMs, now],
  );
  return rows.length > 0;
}

/** Queues whose ceiling is not counted as it was last set. Index: queues_ceilings. */
export async function findUnsetCeilings(
  db: Queryable,
): Promise<{ readonly queue: string; readonly maxActive: number | null }[]> {
  const rows = await db.query<{ queue: string; max_active: number | null }>(
    `select q.name as queue, q.max_active
     from sluice.queues q left join sluice.admission a on a.scope = q.name
     where q.max_active is not null and a.max_active is distinct from q.max_active
     union all
     select a.scope, null from sluice.admission a
     where a.max_active is not null and not exists (
       select from sluice.queues q where q.name = a.scope and q.max_active is not null
     )`,
  );
  return rows.map(({ queue, max_active: maxActive }) => ({ queue, maxActive }));
}
