import { instantOf, type TaskId } from '../domain/ids.js';
import { LockedError, NoPartitionError, type Instant, type Queryable } from './database.js';

/**
 * A day's partition of inputs and of history for every day from two days ago (a task's id is made
 * before it is written) to `daysAhead` from now. Costs one look at the catalogue when all are there.
 */
export async function ensurePartitions(
  db: Queryable,
  daysAhead: number,
  now: Instant,
): Promise<void> {
  try {
    await db.query('select sluice.ensure_partitions($1, coalesce($2::timestamptz, now()))', [
      daysAhead,
      now,
    ]);
  } catch (error) {
    throw asNoPartition(error, `Partitions of the next ${daysAhead} days could not be made`);
  }
}

/**
 * The same for today and tomorrow alone, in a database that no other process uses: there no lock has to be
 * waited for, so a day may as well be made when it begins. Twenty tables would take half a second of a first start.
 */
export async function ensureNextPartitions(db: Queryable, now: Instant): Promise<void> {
  await db.query(
    `select sluice.make_days('task_inputs', days), sluice.make_days('task_history', days)
     from (select (coalesce($1::timestamptz, now()) at time zone 'UTC')::date as today) as clock,
       lateral (select array[today, today + 1] as days) as next`,
    [now],
  );
}

type Parent = 'task_inputs' | 'task_history';

/** What a write needs partitions for: the ids of new tasks, and the instant at which tasks end. */
export interface Written {
  readonly created?: readonly { readonly taskId: TaskId }[];
  readonly now: Instant;
}

/** A write that spans midnight may need two days, one after the other. */
const maxMakings = 3;

/**
 * Every insert into `task_inputs` or `task_history` goes through here. When its day has no partition,
 * because no process was there to make it in time, the partition is made and `write` runs again. So
 * `write` must be all or nothing: one statement or one transaction.
 */
export async function withPartitions<Answer>(
  db: Queryable,
  written: Written,
  write: () => Promise<Answer>,
): Promise<Answer> {
  for (let makings = 0; ; makings += 1) {
    try {
      return await write();
    } catch (error) {
      const parent = missingPartitionOf(error);
      if (parent === null) throw error;
      if (makings === maxMakings) {
        const what = `The day has no partition of sluice.${parent}`;
        throw new NoPartitionError(`${what}, although it was made.`, { cause: error });
      }
      await makeDays(db, parent, written);
    }
  }
}

/** By its fields, not by its message, which Postgres translates. A broken constraint has a name. */
function missingPartitionOf(error: unknown): Parent | null {
  if (!(error instanceof Error) || !('code' in error) || error.code !== '23514') return null;
  if ('constraint' in error && error.constraint !== undefined) return null;
  const table = 'table' in error ? error.table : undefined;
  return table === 'task_inputs' || table === 'task_history' ? table : null;
}

/** Inputs by the days in the ids; history by the clock, and the next day, which may begin meanwhile. */
async function makeDays(db: Queryable, parent: Parent, { created, now }: Written): Promise<void> {
  try {
    if (parent === 'task_inputs') {
      const days = new Set(created?.map(({ taskId }) => dayOf(instantOf(taskId))));
      await db.query(`select sluice.make_days('task_inputs', $1::date[])`, [[...days]]);
    } else {
      await db.query(
        `select sluice.make_days('task_history', array[day, day + 1])
         from (select (coalesce($1::timestamptz, now()) at time zone 'UTC')::date as day) as clock`,
        [now],
      );
    }
  } catch (error) {
    const what = `The day has no partition of sluice.${parent}, and it could not be made`;
    throw asNoPartition(error, what);
  }
}

function dayOf(instantMs: number): string {
  return new Date(instantMs).toISOString().slice(0, 10);
}

function asNoPartition(error: unknown, what: string): unknown {
  if (error instanceof LockedError) {
    return new NoPartitionError(`${what}: another transaction holds a lock.`, { cause: error });
  }
  if (!isForbidden(error)) return error;
  const why =
    'the database role of this process does not own the tables of the schema sluice, or may not ' +
    'create tables there. Use the role that owns the schema, or grant that role to this one';
  return new NoPartitionError(`${what}: ${why}.`, { cause: error });
}

/** Insufficient privilege. */
function isForbidden(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '42501';
}

/** A day's partition on its way out; whoever began it may have died half-way. */
interface DayTable {
  readonly name: string;
  /** As a date of Postgres. */
  readonly day: string;
  readonly state: 'attached' | 'detaching' | 'detached';
  /** A statement, with the names as Postgres itself quotes them. */
  readonly detach: string;
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
  not exists (select from sluice.tasks_of(found.day))
  and not exists (
    select from pg_catalog.pg_locks held
    where held.relation = found.oid and held.mode = 'RowExclusiveLock'
      and held.database = (select oid from pg_database where datname = current_database())
  )`;

/** A table of a day that is no partition was detached before: they are made and attached in one. */
const daysSql = `
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
)`;

const findDaysSql = (isDone: string): string => `${daysSql}
select
  found.name, to_char(found.day, 'YYYY-MM-DD') as day, found.state,
  format('alter table sluice.%I detach partition sluice.%I', $1::text, found.name) as detach
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
    try {
      if (await drop(db, parent, day)) dropped.push(day.name);
    } catch (error) {
      // The lock is on the parent: the other days would wait for the same transaction.
      if (error instanceof LockedError) break;
      throw error;
    }
  }
  return dropped;
}

/**
 * Detached first, and "concurrently": to drop a partition locks its parent against every read and
 * write, so that all would wait behind it while it waits for one open transaction. This way nobody
 * waits, except behind a pooler (`queryShared`). It waits itself, for those that are at the table, at most
 * the session's lock_timeout; what was begun then is finished another time, by whichever server comes first.
 */
async function drop(
  db: Queryable,
  parent: Parent,
  { day, state, detach }: DayTable,
): Promise<boolean> {
  try {
    if (state === 'attached') await db.query(`${detach} concurrently`);
    if (state === 'detaching') await db.query(`${detach} finalize`);
    const [row] = await db.query<{ dropped: boolean }>(
      'select sluice.drop_detached($1, $2::date) as dropped',
      [parent, day],
    );
    return row?.dropped === true;
  } catch (error) {
    if (isDoneByAnother(error)) return false;
    throw error;
  }
}

/** A smaller day is not worth the lock that replacing it takes. */
const leastBytes = 256 * 1024;
/** What is kept of a day must be at most a quarter of it, and so much that copying it takes seconds. */
const leastSaving = 4;
const maxKeptTasks = 20_000;
const maxKeptBytes = 256 * 1024 * 1024;
/** Of a row, besides its parameters: about. */
const rowBytes = 128;

const findPinnedSql = `${daysSql}
select
  found.name, to_char(found.day, 'YYYY-MM-DD') as day,
  pg_total_relation_size(found.oid) as bytes
from days found, (select coalesce($4::timestamptz, now()) at time zone 'UTC' as now) clock
where found.day < least((clock.now - $2::float8 * interval '1 day')::date - 1, clock.now::date - 2)
  and found.day > coalesce($5::date, '-infinity')
  and found.state = 'attached' and pg_total_relation_size(found.oid) > ${leastBytes}
order by found.day
limit $3`;

const measureKeptSql = `
select count(*) as tasks, coalesce(sum(pg_column_size(input.parameters)), 0)::float8 as bytes
from
  (select id from sluice.tasks_of($1::date) as task (id) limit ${maxKeptTasks + 1}) as needed,
  sluice.task_inputs as input
where input.task_id = needed.id`;

interface PinnedDay {
  readonly name: string;
  readonly day: string;
  readonly bytes: number;
}

/**
 * A few tasks that are kept for long, dead letters or tasks due in months, would keep the inputs of
 * all tasks that were submitted on the same day. Such a day is replaced by one with the inputs of
 * those few. Looks at `limit` days after the day `after`, and answers where to go on: null, at the
 * beginning. Throws LockedError when a transaction is open on the inputs: each try makes others wait
 * for 50 ms, so the next one comes later.
 */
export async function compactInputs(
  db: Queryable,
  keptDays: number,
  after: string | null,
  limit: number,
  now: Instant,
): Promise<{ readonly compacted: readonly string[]; readonly next: string | null }> {
  const compacted: string[] = [];
  const parameters = ['task_inputs', keptDays, limit, now, after];
  const days = await db.query<PinnedDay>(findPinnedSql, parameters);
  for (const day of days) {
    if (await compact(db, day)) compacted.push(day.name);
  }
  return { compacted, next: days.length < limit ? null : (days.at(-1)?.day ?? null) };
}

async function compact(db: Queryable, { day, bytes }: PinnedDay): Promise<boolean> {
  const [kept] = await db.query<{ tasks: number; bytes: number }>(measureKeptSql, [day]);
  if (kept === undefined || kept.tasks > maxKeptTasks || kept.bytes > maxKeptBytes) return false;
  if (leastSaving * (kept.bytes + kept.tasks * rowBytes) + leastBytes > bytes) return false;
  try {
    await db.query('select sluice.copy_kept_inputs_of($1::date)', [day]);
    await db.query('select sluice.replace_inputs_of($1::date)', [day]);
    return true;
  } catch (error) {
    if (isDoneByAnother(error)) return false;
    throw error;
  }
}

/**
 * No such partition any more; it is detached by another, or no longer; the table is there already,
 * in the catalogue or in one of its unique indexes.
 */
const doneCodes: ReadonlySet<unknown> = new Set(['42P01', '55000', '42P07', '23505']);

function isDoneByAnother(error: unknown): boolean {
  return error instanceof Error && 'code' in error && doneCodes.has(error.code);
}
