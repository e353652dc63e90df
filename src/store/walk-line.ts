import type { TaskId } from '../domain/ids.js';
import { rankOf } from '../domain/priority.js';
import { arrayLiteral } from './columns.js';
import type { Instant, Queryable } from './database.js';
import {
  readyOf,
  windowOf,
  type LineWindow,
  type ReadyRow,
  type ReadyTaskRow,
  type WindowRow,
} from './task-row.js';

/**
 * The first entry of the next window in tasks_line: stepping from window to window costs one look
 * into the index each, however many tasks lie between.
 */
const nextWindow = `
  select queue, task_type, capabilities, priority
  from sluice.tasks
  where status = 'queued'
    and (queue, task_type, capabilities, priority)
      > (step.queue, step.task_type, step.capabilities, step.priority)
  order by queue, task_type, capabilities, priority
  limit 1`;

/** Before every other: no queue has an empty name. */
const firstStep = `select $1::text collate "C" as queue, $2::text collate "C" as task_type,
    $3::text[] collate "C" as capabilities, $4::smallint as priority, 1 as n`;

const findWindowsSql = `
with recursive step as (
  ${firstStep}
  union all
  select next.*, step.n + 1 from step, lateral (${nextWindow}) as next where step.n <= $5
)
select queue, task_type, capabilities, priority from step where n > 1`;

/** The windows that have a line, in a stable order, after the one given. */
export async function findWindows(
  db: Queryable,
  limit: number,
  after: LineWindow | null,
): Promise<LineWindow[]> {
  const rows = await db.query<WindowRow>(findWindowsSql, [...windowParameters(after), limit]);
  return rows.map(windowOf);
}

/** A place in the walk over all queued tasks. */
export interface QueuedCursor {
  readonly window: LineWindow;
  /** As text: a Date would cut off the microseconds, and meet the same tasks again. */
  readonly eligibleAt: string;
  readonly seq: number;
}

const windowsPerCall = 1000;

/**
 * Rest of the cursor's window, then the windows after it, until there are enough. A window whose
 * tasks were all claimed meanwhile answers with a row of its own, so that the cursor moves on.
 */
const walkQueuedSql = `
with recursive step as (
  ${firstStep}
  union all
  select next.*, step.n + 1 from step, lateral (${nextWindow}) as next where step.n <= $7
)
select
  step.queue, step.task_type, step.capabilities, step.priority, step.n,
  task.id, task.seq, task.cost, task.eligible_at::text as eligible_at,
  date_part('epoch', coalesce($9::timestamptz, now()) - task.eligible_at) * 1000 as age_ms,
  date_part('epoch', task.eligible_at) * 1000 as eligible_ms
from step
left join lateral (
  select id, seq, cost, eligible_at
  from sluice.tasks line
  where line.queue = step.queue and line.task_type = step.task_type
    and line.capabilities = step.capabilities and line.priority = step.priority
    and line.status = 'queued'
    and (line.eligible_at, line.seq) > (
      case when step.n = 1 then $5::timestamptz else '-infinity' end,
      case when step.n = 1 then $6::bigint else 0 end
    )
  order by line.eligible_at, line.seq
  limit $8
) as task on true
where step.n > 1 or task.id is not null
limit $8`;

interface WalkRow extends ReadyTaskRow {
  readonly n: number;
  readonly eligible_at: string;
}

interface EmptyWindowRow extends WindowRow {
  readonly n: number;
  readonly id: null;
}

/** A lap over all queued tasks in steps of about `limit`; null starts it, and `next` null ends it. */
export async function walkQueued(
  db: Queryable,
  after: QueuedCursor | null,
  limit: number,
  now: Instant,
): Promise<{ rows: ReadyRow[]; next: QueuedCursor | null }> {
  const found = await db.query<WalkRow | EmptyWindowRow>(walkQueuedSql, [
    ...windowParameters(after?.window ?? null),
    after?.eligibleAt ?? '-infinity',
    after?.seq ?? 0,
    windowsPerCall,
    limit,
    now,
  ]);
  const last = found.at(-1);
  const isEnd = last === undefined || (found.length < limit && last.n <= windowsPerCall);
  return {
    rows: found.filter((row) => row.id !== null).map(readyOf),
    next: isEnd ? null : cursorAt(last),
  };
}

/** Of these, those that are queued, as they are now. Index: the primary key. */
export async function findQueued(
  db: Queryable,
  taskIds: readonly TaskId[],
  now: Instant,
): Promise<ReadyRow[]> {
  const rows = await db.query<ReadyTaskRow>(
    `select
       id, queue, task_type, capabilities, priority, seq, cost,
       date_part('epoch', coalesce($2::timestamptz, now()) - eligible_at) * 1000 as age_ms,
       date_part('epoch', eligible_at) * 1000 as eligible_ms
     from sluice.tasks where id = any($1::uuid[]) and status = 'queued'`,
    [taskIds, now],
  );
  return rows.map(readyOf);
}

/** For the walk to go on behind a window, whatever is left of it. */
export function endOf(window: LineWindow): QueuedCursor {
  return { window, eligibleAt: 'infinity', seq: 0 };
}

function cursorAt(row: WalkRow | EmptyWindowRow): QueuedCursor {
  const window = windowOf(row);
  return row.id === null
    ? { window, eligibleAt: '-infinity', seq: 0 }
    : { window, eligibleAt: row.eligible_at, seq: row.seq };
}

function windowParameters(window: LineWindow | null): unknown[] {
  if (window === null) return ['', '', '{}', 0];
  const { lane, priority } = window;
  return [lane.queue, lane.taskType, arrayLiteral(lane.capabilities), rankOf(priority)];
}
