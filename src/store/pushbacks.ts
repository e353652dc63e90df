import { isUuid, type TaskId, type WorkerId } from '../domain/ids.js';
import type { PushbackEffect } from '../domain/pushback.js';
import type { Page, PageRequest } from '../protocol/page.js';
import type { Pushback } from '../protocol/pushbacks-api.js';
import { column } from './columns.js';
import type { Instant, Queryable } from './database.js';
import { badCursor, decodeCursor, defaultPageLimit, encodeCursor } from './paging.js';

/** What was written before, by a statement whose answer was lost, stays as it is. */
export async function insertPushbacks(db: Queryable, rows: readonly Pushback[]): Promise<void> {
  await db.query(
    `insert into sluice.pushbacks
       (queue, at, task_id, task_type, worker_id, code, message, retry_after_ms, answers, became, until)
     select * from unnest($1::text[], $2::timestamptz[], $3::uuid[], $4::text[], $5::uuid[], $6::text[],
       $7::text[], $8::bigint[], $9::integer[], $10::text[], $11::timestamptz[])
     on conflict do nothing`,
    [
      column(rows, ({ queue }) => queue),
      column(rows, ({ at }) => at),
      column(rows, ({ taskId }) => taskId),
      column(rows, ({ taskType }) => taskType),
      column(rows, ({ workerId }) => workerId),
      column(rows, ({ code }) => code),
      column(rows, ({ message }) => message),
      column(rows, ({ retryAfterMs }) => retryAfterMs),
      column(rows, ({ answers }) => answers),
      column(rows, ({ became }) => became),
      column(rows, ({ until }) => until),
    ],
  );
}

interface PushbackRow {
  readonly queue: string;
  readonly at: Date;
  readonly task_id: TaskId;
  readonly task_type: string;
  readonly worker_id: WorkerId;
  readonly code: string;
  readonly message: string;
  readonly retry_after_ms: number | null;
  readonly answers: number;
  readonly became: PushbackEffect;
  readonly until: Date | null;
}

/** Of a queue, newest first. Index: pushbacks_pkey. */
export async function listPushbacks(
  db: Queryable,
  queue: string,
  page: PageRequest,
): Promise<Page<Pushback>> {
  const limit = page.limit ?? defaultPageLimit;
  const before = page.cursor === undefined ? null : decodePlace(page.cursor);
  const rows = await db.query<PushbackRow>(
    `select * from sluice.pushbacks
     where queue = $1
       and (at, task_id) < (
         coalesce($2::timestamptz, 'infinity'), coalesce($3, '00000000-0000-0000-0000-000000000000')::uuid
       )
     order by at desc, task_id desc limit $4::integer`,
    [queue, before?.at ?? null, before?.taskId ?? null, limit],
  );
  const items = rows.map(toPushback);
  const last = items.length === limit ? items.at(-1) : undefined;
  return { items, nextCursor: last === undefined ? null : encodePlace(last) };
}

type Place = Pick<Pushback, 'at' | 'taskId'>;

function encodePlace({ at, taskId }: Place): string {
  return encodeCursor(`${at.getTime()} ${taskId}`);
}

function decodePlace(cursor: string): Place {
  const [, at, taskId = ''] = /^(\d{1,13}) (\S+)$/.exec(decodeCursor(cursor)) ?? [];
  if (at === undefined || !isUuid(taskId)) throw badCursor();
  return { at: new Date(Number(at)), taskId: taskId as TaskId };
}

function toPushback(row: PushbackRow): Pushback {
  const { queue, at, code, message, answers, became, until } = row;
  return {
    at,
    queue,
    taskId: row.task_id,
    taskType: row.task_type,
    workerId: row.worker_id,
    code,
    message,
    retryAfterMs: row.retry_after_ms,
    answers,
    became,
    until,
  };
}

/** Deletes all but the newest `kept` of each of these queues. Index: pushbacks_pkey, `kept` steps for each queue. */
export async function trimPushbacks(
  db: Queryable,
  queues: readonly string[],
  kept: number,
): Promise<void> {
  await db.query(
    `delete from sluice.pushbacks old
     using unnest($1::text[]) as trimmed (queue), lateral (
       select at, task_id from sluice.pushbacks known
       where known.queue = trimmed.queue collate "C"
       order by at desc, task_id desc offset $2::integer limit 1
     ) as edge
     where old.queue = trimmed.queue collate "C"
       and (old.at, old.task_id) <= (edge.at, edge.task_id)`,
    [column(queues, (name) => name), kept],
  );
}

/** Deletes, oldest first, what is too old and what is more than `maxRows` in all. How many went. Index: pushbacks_at. */
export async function purgePushbacks(
  db: Queryable,
  { keptMs, maxRows, limit }: { keptMs: number; maxRows: number; limit: number },
  now: Instant,
): Promise<number> {
  const gone = await db.query(
    `delete from sluice.pushbacks where (queue, at, task_id) in (
       select queue, at, task_id from sluice.pushbacks
       where at < greatest(
         coalesce($4::timestamptz, now()) - $1::float8 * interval '1 ms',
         (select at from sluice.pushbacks order by at desc offset $2::integer limit 1)
       )
       order by at limit $3::integer
     ) returning queue`,
    [keptMs, maxRows, limit, now],
  );
  return gone.length;
}
