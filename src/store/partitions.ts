import { LockedError, type Instant, type Queryable } from './database.js';

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

type Parent = 'task_inputs' | 'task_history';

/** A day's partition on its way out; whoever began it may have died half-way. */
interface DayTable {
  readonly name: string;
  readonly state: 'attached' | 'detaching' | 'detached';
  /** Statements, with the names as Postgres itself quotes them. */
  readonly detach: string;
  readonly drop: string;
}

/**
 * Drops the days of history that ended `keptDays` ago or earlier. Answers with their names. Days that
 * `ensurePartitions` makes are left alone.
 */
export function dropHistory(
  db: Queryable,
  keptDays: number,
  limit: number,
  now: Instant,
): Promise<string[]> {
  return dropDays(db, findEndedHistory, 'task_history', [keptDays, limit, now]);
}

/** Drops the days of inputs of which no task is left, neither among the living nor in history. */
export function dropInputs(db: Queryable, limit: number, now: Instant): Promise<string[]> {
  return dropDays(db, findUnusedInputs, 'task_inputs', [0, limit, now]);
}

/**
 * Index: the primary keys, one probe for each day and partition. A transaction that wrote into the
 * day and has not committed may bring a task that nobody sees yet.
 */
const isUnused = `
  not exists (
    select from sluice.tasks t
    where t.id >= sluice.first_id_of(found.day) and t.id < sluice.first_id_of(found.day + 1)
  )
  and not exists (
    select from sluice.task_history h
    where h.id >= sluice.first_id_of(found.day) and h.id < sluice.first_id_of(found.day + 1)
  )
  and not exists (
    select from pg_catalog.pg_locks held
    where held.relation = found.oid and held.mode = 'RowExclusiveLock'
      and held.database = (select oid from pg_database where datname = current_database())
  )`;

/** A table of a day that is no partition was detached before: they are made and attached in one. */
const findDaysSql = (isDone: string): string => `
with days as (
  select
    child.oid, child.relname as name, to_date(right(child.relname, 8), 'YYYYMMDD') as day,
    case
      when link.inhrelid is null then 'detached'
      when link.inhdetachpending then 'detaching'
      else 'attached'
    end as state
  from pg_catalog.pg_class child
  left join pg_catalog.pg_inherits link on link.inhrelid = child.oid
  where child.relnamespace = 'sluice'::regnamespace and child.relkind = 'r'
    and child.relname ~ ('^' || $1::text || '_\\d{8}$')
)
select
  found.name, found.state,
  format('alter table sluice.%I detach partition sluice.%I', $1::text, found.name) as detach,
  format('drop table if exists sluice.%I', found.name) as drop
from days found, (select coalesce($4::timestamptz, now()) at time zone 'UTC' as now) clock
where found.day < least((clock.now - $2::float8 * interval '1 day')::date, clock.now::date - 2)
  and (found.state <> 'attached' or (${isDone}))
order by found.day
limit $3`;

const findEndedHistory = findDaysSql('true');
const findUnusedInputs = findDaysSql(isUnused);

async function dropDays(
  db: Queryable,
  findSql: typeof findEndedHistory,
  parent: Parent,
  parameters: readonly unknown[],
): Promise<string[]> {
  const dropped: string[] = [];
  for (const day of await db.query<DayTable>(findSql, [parent, ...parameters])) {
    if (await drop(db, day)) dropped.push(day.name);
  }
  return dropped;
}

/**
 * Detached first, and "concurrently": to drop a partition locks its parent against every read and
 * write, so that all would wait behind it while it waits for one open transaction. This way nobody
 * waits. It waits itself, for those that are at the table, at most the session's lock_timeout; what
 * was begun then is finished another time, by whichever server comes first.
 */
async function drop(db: Queryable, { state, detach, drop }: DayTable): Promise<boolean> {
  try {
    if (state === 'attached') await db.query(`${detach} concurrently`);
    if (state === 'detaching') await db.query(`${detach} finalize`);
    await db.query(drop);
    return true;
  } catch (error) {
    if (error instanceof LockedError || isDoneByAnother(error)) return false;
    throw error;
  }
}

/** No such partition any more; or it is detached by another, or no longer. */
const doneCodes: ReadonlySet<unknown> = new Set(['42P01', '55000']);

function isDoneByAnother(error: unknown): boolean {
  return error instanceof Error && 'code' in error && doneCodes.has(error.code);
}
