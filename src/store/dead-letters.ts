import type { TaskId } from '../domain/ids.js';
import type { DeadLetterFilter, DeadLetterPattern } from '../protocol/dead-letters-api.js';
import type { Page, PageRequest } from '../protocol/page.js';
import type { TaskView } from '../protocol/tasks-api.js';
import type { Instant, Queryable } from './database.js';
import { lastTaskId } from './list-tasks.js';
import { decodeIdCursor, defaultPageLimit, encodeCursor } from './paging.js';
import type { AttemptErrorJson } from './task-row.js';
import { livingColumns, toTaskView, viewColumns, viewJoins, type ViewRow } from './task-view.js';

/** Before every id there is. */
const firstTaskId = '00000000-0000-0000-0000-000000000000' as TaskId;

/** The newest this many are counted and analysed; a total that reaches it is a lower bound. */
const maxAnalysed = 100_000;

/**
 * Not by `->>`, which fails for an error whose message holds an escape that is no text, such as
 * \\u0000. The store writes the code first; it stays escaped as JSON escapes it.
 */
const codeOf = (error: string): string =>
  `substring(${error}::text from '^\\{"code":"((?:[^"\\\\]|\\\\.)*)"')`;

// Index: tasks_ended.
const isWanted = `status = 'dead_letter'
  and ($1::text is null or queue = $1)
  and ($2::text is null or task_type = $2)
  and ($3::text is null or ${codeOf('error')} = $3)
  and ($4::timestamptz is null or ended_at >= $4)
  and ($5::timestamptz is null or ended_at < $5)`;

function wanted({ queue, taskType, code, since, until }: DeadLetterFilter): unknown[] {
  const escaped = code === undefined ? null : JSON.stringify(code).slice(1, -1);
  return [queue ?? null, taskType ?? null, escaped, since ?? null, until ?? null];
}

export async function listDeadLetters(
  db: Queryable,
  filter: DeadLetterFilter,
  page: PageRequest,
  now: Instant,
): Promise<Page<TaskView> & { readonly totalCount: number }> {
  const limit = page.limit ?? defaultPageLimit;
  const before = page.cursor === undefined ? lastTaskId : decodeIdCursor(page.cursor);
  const rows = await db.query<(ViewRow | { id: null }) & { now: Date; total: number }>(
    `with total as (
       select count(*) as count from (
         select from sluice.tasks where ${isWanted} limit ${maxAnalysed}
       ) counted
     ), page as (
       select ${livingColumns} from sluice.tasks
       where id < $6::uuid and ${isWanted} order by id desc limit $7::int
     )
     select ${viewColumns(false)}, total.count as total, coalesce($8::timestamptz, now()) as now
     from total left join page task on true ${viewJoins}
     order by task.id desc`,
    [...wanted(filter), before, limit, now],
  );
  const items = rows.flatMap((row) => (row.id === null ? [] : [toTaskView(row, row.now, false)]));
  const last = items.length < limit ? undefined : items.at(-1);
  return {
    items,
    nextCursor: last === undefined ? null : encodeCursor(last.taskId),
    totalCount: rows[0]?.total ?? 0,
  };
}

/** Oldest first: what waits longest for somebody to look at it. */
export async function findDeadLetters(
  db: Queryable,
  filter: DeadLetterFilter,
  limit: number,
  after: TaskId = firstTaskId,
): Promise<TaskId[]> {
  const rows = await db.query<{ id: TaskId }>(
    `select id from sluice.tasks where id > $6::uuid and ${isWanted} order by id limit $7::int`,
    [...wanted(filter), after, limit],
  );
  return rows.map((row) => row.id);
}

interface PatternRow {
  queue: string;
  task_type: string;
  code: string | null;
  count: number;
  first_seen: Date;
  last_seen: Date;
  example_id: TaskId;
  example_error: AttemptErrorJson | null;
}

/** By queue, type and code, the most frequent first; the newest of each stands as its example. */
export async function analyseDeadLetters(db: Queryable): Promise<DeadLetterPattern[]> {
  const rows = await db.query<PatternRow>(
    `with newest as (
       select id, queue, task_type, ended_at, error, ${codeOf('error')} as code
       from sluice.tasks where status = 'dead_letter' order by id desc limit ${maxAnalysed}
     ), pattern as (
       select queue, task_type, code, count(*) as count, min(ended_at) as first_seen,
         max(ended_at) as last_seen, (array_agg(id order by id desc))[1] as example_id
       from newest group by queue, task_type, code
     )
     select pattern.*, example.error as example_error
     from pattern join sluice.tasks example on example.id = pattern.example_id
     order by pattern.count desc, pattern.queue, pattern.task_type, pattern.code`,
  );
  return rows.map((row) => ({
    queue: row.queue,
    taskType: row.task_type,
    code: row.example_error?.code ?? 'unknown',
    count: row.count,
    firstSeen: row.first_seen,
    lastSeen: row.last_seen,
    retriable: row.example_error?.retriable ?? true,
    example: { taskId: row.example_id, message: row.example_error?.message ?? '' },
  }));
}
