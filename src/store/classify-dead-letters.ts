import { createHash } from 'node:crypto';

import {
  choosePatterns,
  patternsFor,
  type PatternCounts,
  type PatternKey,
} from '../domain/dead-letter-patterns.js';
import type { TaskId } from '../domain/ids.js';
import { normaliseMessage } from '../domain/message-pattern.js';
import { column } from './columns.js';
import type { Database, Instant, Queryable } from './database.js';
import { errorHeadLength, readErrorHead } from './error-head.js';

/** Errors of one batch, as they are stored: Postgres reads each of them whole, 0.3 to 3 ms for 80 kB. */
const maxErrorBytes = 2 * 1024 * 1024;

/** As much as code and message can take, each of their characters escaped. */
const longestToRetriable = 70_000;

/** A dead letter that was not counted yet. */
interface Arrival {
  readonly taskId: TaskId;
  readonly queue: string;
  readonly owner: string;
  /** As Postgres writes it: a Date would lose its microseconds. */
  readonly endedAt: string;
  readonly retriable: boolean;
  readonly pattern: PatternKey;
}

interface ChangedRow {
  readonly task_id: TaskId;
  readonly is_counted: boolean;
  readonly is_as_counted: boolean | null;
  /** Null: it is no dead letter. */
  readonly ended_at: string | null;
  readonly queue: string;
  readonly owner: string;
  readonly task_type: string;
  readonly error: string | null;
  readonly retriable: boolean;
}

/**
 * Brings the counts of dead letters up to date with the next changes, oldest first: `limit` at most, and fewer when
 * their errors are large. Answers with how many there were; null: another server does this now. Compares what is with
 * what was counted, so that changes may be doubled or late. One server at a time, by a lock of the transaction.
 */
export async function classifyDeadLetters(db: Database, limit: number): Promise<number | null> {
  // Looked at first: an idle server writes nothing.
  const changed = await db.query('select from sluice.dead_letter_changes limit 1');
  if (changed.length === 0) return 0;
  return db.transaction(async (tx) => {
    if (!(await isAlone(tx))) return null;
    const { changes, rows } = await takeChanges(tx, limit);
    const gone = rows.filter((row) => row.is_counted && row.is_as_counted !== true);
    const came = rows.filter((row) => row.ended_at !== null && row.is_as_counted !== true);
    if (gone.length > 0) await discount(tx, gone);
    if (came.length > 0) await count(tx, await choose(tx, came.map(toArrival)));
    if (gone.length > 0) await tx.query('delete from sluice.dead_letter_counts where count <= 0');
    return changes;
  });
}

/** A server that hangs loses the lock after 5 s. */
const takeTurnSql = `
select pg_try_advisory_xact_lock(hashtext('sluice.dead_letters')) as is_ours,
  set_config('idle_in_transaction_session_timeout', '5s', true)`;

/** Until the end of the transaction. False: another server changes patterns now. */
async function isAlone(tx: Queryable): Promise<boolean> {
  const [turn] = await tx.query<{ is_ours: boolean }>(takeTurnSql);
  return turn?.is_ours === true;
}

/**
 * The first of the changes is always taken, however large its error is. A quote inside of a text is escaped, so the first
 * `"retriable":` is the name that stands behind code and message. Indexes: the primary keys.
 */
async function takeChanges(
  tx: Queryable,
  limit: number,
): Promise<{ changes: number; rows: readonly ChangedRow[] }> {
  const rows = await tx.query<ChangedRow & { changes: number }>(
    `with next as (
       select change.seq, row_number() over (order by change.seq) as place,
         sum(coalesce(pg_column_size(task.error), 0)) over (order by change.seq) as bytes
       from (select seq, task_id from sluice.dead_letter_changes order by seq limit $1) change
       left join sluice.tasks task on task.id = change.task_id and task.status = 'dead_letter'
     ), taken as (
       delete from sluice.dead_letter_changes where seq = any(array(
         select seq from next where place = 1 or bytes <= ${maxErrorBytes}
       )) returning task_id
     ), changed as (select distinct task_id from taken)
     select changed.task_id, counted.task_id is not null as is_counted,
       counted.ended_at = task.ended_at and counted.queue = task.queue as is_as_counted,
       task.ended_at::text as ended_at, task.queue, coalesce(task.owner, '') as owner, task.task_type,
       left(head.error, ${errorHeadLength}) as error,
       coalesce(
         substr(head.error, nullif(strpos(head.error, '"retriable":'), 0) + 12, 5) <> 'false', true
       ) as retriable,
       (select count(*) from taken)::integer as changes
     from changed
     left join sluice.dead_letters counted on counted.task_id = changed.task_id
     left join sluice.tasks task on task.id = changed.task_id and task.status = 'dead_letter'
     -- Offset 0: it is read once for both columns.
     left join lateral (
       select left(task.error::text, ${longestToRetriable}) as error offset 0
     ) head on true`,
    [limit],
  );
  return { changes: rows[0]?.changes ?? 0, rows };
}

function toArrival(row: ChangedRow): Arrival {
  const { code, message } = readErrorHead(row.error);
  return {
    taskId: row.task_id,
    queue: row.queue,
    owner: row.owner,
    endedAt: row.ended_at ?? '',
    retriable: row.retriable,
    pattern: { taskType: row.task_type, code, message: normaliseMessage(message) },
  };
}

async function choose(tx: Queryable, arrivals: readonly Arrival[]): Promise<Arrival[]> {
  const wanted = arrivals.map(({ pattern }) => pattern);
  const ids = new Set(wanted.flatMap(patternsFor).map(patternId));
  const [counts] = await tx.query<PatternCounts & { known: readonly string[] }>(
    `select count(message)::integer as "withMessage",
       (count(*) - count(message))::integer as "withoutMessage",
       coalesce(array_agg(id) filter (where id = any($1::text[])), '{}') as known
     from sluice.dead_letter_patterns`,
    [[...ids]],
  );
  const { known = [], ...there } = counts ?? { withMessage: 0, withoutMessage: 0 };
  const isKnown = new Set(known);
  const chosen = choosePatterns(wanted, (key) => isKnown.has(patternId(key)), there, patternId);
  return arrivals.map((arrival, n) => ({ ...arrival, pattern: chosen[n] ?? arrival.pattern }));
}

/** The same on every server and for ever: what people write down stays good. */
function patternId({ taskType, code, message }: PatternKey): string {
  const text = JSON.stringify([taskType, code, message]);
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/** Those that were replayed, cancelled or purged, or became a dead letter again. */
async function discount(tx: Queryable, gone: readonly ChangedRow[]): Promise<void> {
  await tx.query(
    `with gone as (
       delete from sluice.dead_letters where task_id = any($1::uuid[]) returning *
     ), sums as (
       select pattern, queue, owner, count(*) as count, count(*) filter (where retriable) as retriable
       from gone group by pattern, queue, owner
     )
     update sluice.dead_letter_counts known
     set count = known.count - sums.count, retriable = known.retriable - sums.retriable
     from sums
     where known.pattern = sums.pattern and known.queue = sums.queue and known.owner = sums.owner`,
    [column(gone, (row) => row.task_id)],
  );
}

const countStatement = `
with came as (
  select * from unnest(
    $1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
    $8::timestamptz[], $9::boolean[]
  ) as came (task_id, pattern, task_type, code, message, queue, owner, ended_at, retriable)
), noted as (
  insert into sluice.dead_letters (task_id, pattern, queue, owner, ended_at, retriable)
  select task_id, pattern, queue, owner, ended_at, retriable from came
), patterns as (
  insert into sluice.dead_letter_patterns as known (id, task_type, code, message, first_seen, last_seen)
  select pattern, task_type, code, message, min(ended_at), max(ended_at)
  from came group by pattern, task_type, code, message
  on conflict (id) do update set
    first_seen = least(known.first_seen, excluded.first_seen),
    last_seen = greatest(known.last_seen, excluded.last_seen)
), hours as (
  insert into sluice.dead_letter_hours as known (pattern, queue, owner, at, count)
  select pattern, part.queue, part.owner, hour, count(*)
  from came, date_bin(interval '1 hour', ended_at, 'epoch'::timestamptz) as hour,
    lateral (values ('', ''), (came.queue, came.owner)) as part (queue, owner)
  group by pattern, part.queue, part.owner, hour
  on conflict (pattern, queue, owner, at) do update set count = known.count + excluded.count
)
insert into sluice.dead_letter_counts as known
  (pattern, queue, owner, count, retriable, first_seen, last_seen)
select pattern, queue, owner, count(*), count(*) filter (where retriable), min(ended_at), max(ended_at)
from came group by pattern, queue, owner
on conflict (pattern, queue, owner) do update set
  count = known.count + excluded.count,
  retriable = known.retriable + excluded.retriable,
  first_seen = least(known.first_seen, excluded.first_seen),
  last_seen = greatest(known.last_seen, excluded.last_seen)`;

async function count(tx: Queryable, came: readonly Arrival[]): Promise<void> {
  await tx.query(countStatement, [
    column(came, ({ taskId }) => taskId),
    column(came, ({ pattern }) => patternId(pattern)),
    column(came, ({ pattern }) => pattern.taskType),
    column(came, ({ pattern }) => JSON.stringify(pattern.code).slice(1, -1)),
    column(came, ({ pattern }) => pattern.message),
    column(came, ({ queue }) => queue),
    column(came, ({ owner }) => owner),
    column(came, ({ endedAt }) => endedAt),
    column(came, ({ retriable }) => retriable),
  ]);
}

const firstId = '00000000-0000-0000-0000-000000000000';
const lastId = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/**
 * Notes as changed what differs from what was counted, among the next `limit` dead letters and as many counted ones, in
 * the order of their ids: changed by a server of an earlier version, or by hand. Answers with where the next call goes
 * on; null: from the beginning. Indexes: tasks_ended, dead_letters_pkey.
 */
export async function noteUncounted(
  db: Queryable,
  after: string | null,
  limit: number,
): Promise<string | null> {
  const [row] = await db.query<{ until: string }>(
    `with dead as materialized (
       select id, queue, ended_at from sluice.tasks
       where status = 'dead_letter' and id > $1::uuid order by id limit $2
     ), counted as materialized (
       select task_id, queue, ended_at from sluice.dead_letters
       where task_id > $1::uuid order by task_id limit $2
     ), until as (
       select least(
         coalesce((select id from dead offset $2 - 1), '${lastId}'),
         coalesce((select task_id from counted offset $2 - 1), '${lastId}')
       ) as id
     ), noted as (
       insert into sluice.dead_letter_changes (task_id)
       select differing.id from until, (
         (select id, queue, ended_at from dead except select * from counted)
         union
         (select * from counted except select id, queue, ended_at from dead)
       ) differing
       where differing.id <= until.id
     )
     select id as until from until`,
    [after ?? firstId, limit],
  );
  return row === undefined || row.until === lastId ? null : row.until;
}

/**
 * Hours before the last 24, and patterns without a dead letter: those last seen longer ago than `keptMs`, and all but
 * the `maxKept` that were seen last, so that there is room for new ones. Not while another server classifies: a pattern
 * that comes back just then would be lost, and its dead letters with it.
 */
export function purgePatterns(
  db: Database,
  keptMs: number,
  maxKept: number,
  now: Instant,
): Promise<void> {
  return db.transaction(async (tx) => {
    if (await isAlone(tx)) await tx.query(purgeStatement, [keptMs, maxKept, now]);
  });
}

const purgeStatement = `
with hours as (
  delete from sluice.dead_letter_hours
  where at < coalesce($3::timestamptz, now()) - interval '25 hours'
), absent as (
  select id, last_seen, row_number() over (order by last_seen desc) as place
  from sluice.dead_letter_patterns known
  where not exists (select from sluice.dead_letter_counts where pattern = known.id)
)
delete from sluice.dead_letter_patterns known using absent
where known.id = absent.id and (
  absent.place > $2
  or absent.last_seen < coalesce($3::timestamptz, now()) - $1::float8 * interval '1 ms'
)`;
