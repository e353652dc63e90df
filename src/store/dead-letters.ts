import { likePatterns, unconfined, type Confinement } from '../domain/confinement.js';
import type { TaskId } from '../domain/ids.js';
import type {
  DeadLetterFilter,
  DeadLetterPage,
  DeadLetterPattern,
} from '../protocol/dead-letters-api.js';
import { bounds } from '../protocol/bounds.js';
import type { ListRequest } from '../protocol/tasks-api.js';
import type { Instant, Queryable } from './database.js';
import { lastTaskId, maxScannedRows, pageFrom, type ListedRow } from './list-tasks.js';
import { decodeIdCursor, defaultPageLimit } from './paging.js';
import type { AttemptErrorJson } from './task-row.js';
import { cutToBytes, livingColumns, viewColumns, viewJoins } from './task-view.js';

/** Before every id there is. */
const firstTaskId = '00000000-0000-0000-0000-000000000000' as TaskId;

/** The newest this many are analysed. */
const maxAnalysed = 20_000;
/** Anybody may invent queues, types and codes. */
const maxPatterns = 1_000;

/**
 * The walk: at most `maxScannedRows` dead letters in the order of their ids, by the index of one filter, the
 * most selective that is given. Of these the other filters choose.
 * Indexes: tasks_dead_by_code, tasks_dead_by_type, tasks_dead_by_queue; without a filter tasks_ended.
 */
function walkSql(
  { queue, taskType, code }: DeadLetterFilter,
  range: string,
  order: string,
): string {
  const filter =
    code !== undefined
      ? `and ${codeOfError} = $3`
      : taskType !== undefined
        ? 'and task_type = $2'
        : queue !== undefined
          ? 'and queue = $1'
          : '';
  return `select * from sluice.tasks where status = 'dead_letter' and ${range} ${filter}
    order by id ${order} limit ${maxScannedRows}`;
}

const codeOfError = 'sluice.error_code(error) collate "C"';

const isWanted = `($1::text is null or queue = $1)
  and ($2::text is null or task_type = $2)
  and ($3::text is null or ${codeOfError} = $3)
  and ($4::timestamptz is null or ended_at >= $4)
  and ($5::timestamptz is null or ended_at < $5)
  and ($6::text is null or owner = $6)
  and ($7::text[] is null or queue like any($7))`;

function wanted(filter: DeadLetterFilter): unknown[] {
  const { queue, taskType, code, since, until, within = unconfined } = filter;
  const escaped = code === undefined ? null : JSON.stringify(code).slice(1, -1);
  return [
    ...[queue ?? null, taskType ?? null, escaped, since ?? null, until ?? null],
    ...[within.owner, likePatterns(within)],
  ];
}

export async function listDeadLetters(
  db: Queryable,
  filter: DeadLetterFilter,
  page: ListRequest,
  now: Instant,
): Promise<DeadLetterPage> {
  const { include = [] } = page;
  const limit = page.limit ?? defaultPageLimit;
  const before = page.cursor === undefined ? lastTaskId : decodeIdCursor(page.cursor);
  const rows = await db.query<ListedRow & { total: number; floor: TaskId | null }>(
    `with recursive counted as (
       select count(*) as total from (${walkSql(filter, `id < '${lastTaskId}'`, 'desc')}) walk
       where ${isWanted}
     ), walk as materialized (${walkSql(filter, 'id < $8::uuid', 'desc')}), page as (
       select ${livingColumns} from walk where ${isWanted}
       order by id desc limit $9::int
     ), ${cutToBytes(include)}
     select ${viewColumns(include)}, counted.total, (select count(*) from page) as found,
       (select id from walk order by id desc offset ${maxScannedRows - 1} limit 1) as floor,
       coalesce($10::timestamptz, now()) as now
     from counted left join kept task on true ${viewJoins}
     order by task.id desc`,
    [...wanted(filter), before, limit, now],
  );
  const listed = pageFrom(rows, limit, include, rows[0]?.floor ?? null);
  return { ...listed, totalCount: rows[0]?.total ?? 0 };
}

export interface FoundDeadLetters {
  readonly taskIds: readonly TaskId[];
  /** To look on from; null: these were the last. */
  readonly next: TaskId | null;
}

/** Oldest first: what waits longest for somebody to look at it. */
export async function findDeadLetters(
  db: Queryable,
  filter: DeadLetterFilter,
  limit: number,
  after: TaskId = firstTaskId,
): Promise<FoundDeadLetters> {
  const [row] = await db.query<{ ids: readonly TaskId[] | null; last: TaskId | null }>(
    `with walk as materialized (${walkSql(filter, 'id > $8::uuid', 'asc')})
     select
       (
         select array_agg(id order by id)
         from (
           select id from walk where ${isWanted} order by id limit $9::int
         ) found
       ) as ids,
       (select id from walk order by id offset ${maxScannedRows - 1} limit 1) as last`,
    [...wanted(filter), after, limit],
  );
  const taskIds = row?.ids ?? [];
  return { taskIds, next: (taskIds.length < limit ? row?.last : taskIds.at(-1)) ?? null };
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
export async function analyseDeadLetters(
  db: Queryable,
  within: Confinement = unconfined,
): Promise<DeadLetterPattern[]> {
  const rows = await db.query<PatternRow>(
    `with newest as (
       select id, queue, task_type, ended_at, error, ${codeOfError} as code
       from sluice.tasks where status = 'dead_letter' and ${isWanted}
       order by id desc limit ${maxAnalysed}
     ), pattern as (
       select queue, task_type, code, count(*) as count, min(ended_at) as first_seen,
         max(ended_at) as last_seen, (array_agg(id order by id desc))[1] as example_id
       from newest group by queue, task_type, code
       order by count desc, queue, task_type, code limit ${maxPatterns}
     ), measured as (
       select pattern.*, example.error as example_error, sum(octet_length(example.error::text)) over (
         order by count desc, pattern.queue, pattern.task_type, code
         rows between unbounded preceding and 1 preceding
       ) as bytes_before
       from pattern join sluice.tasks example on example.id = pattern.example_id
     )
     select * from measured where coalesce(bytes_before, 0) < ${bounds.answerBytes}
     order by count desc, queue, task_type, code`,
    wanted({ within }),
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
