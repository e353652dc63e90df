import { rankOf } from '../domain/priority.js';
import { arrayLiteral, column } from './columns.js';
import { prepared, type Instant, type Queryable } from './database.js';
import {
  readyIn,
  readyOf,
  type LinePosition,
  type LineWindow,
  type ReadyRow,
  type ReadyTaskRow,
  type WindowRow,
} from './task-row.js';

export interface WantedFromLine {
  readonly window: LineWindow;
  /** The first that is wanted. */
  readonly from: LinePosition;
  readonly limit: number;
}

/**
 * Of each line the next ones from a position on. Index: tasks_line, entered at the position, so that
 * the cost is what is read, however many are behind them and however many were claimed before them.
 * A position is exact: milliseconds that come from microseconds are rounded back to them.
 */
const readLinesSql = prepared(`
select
  wanted.n, task.id, task.seq, task.cost,
  date_part('epoch', coalesce($8::timestamptz, now()) - task.eligible_at) * 1000 as age_ms,
  date_part('epoch', task.eligible_at) * 1000 as eligible_ms
from
  unnest(
    $1::text[], $2::text[], $3::text[], $4::smallint[], $5::float8[], $6::bigint[], $7::integer[]
  ) with ordinality as wanted (queue, task_type, capabilities, priority, from_ms, from_seq, most, n),
  lateral (
    select id, seq, cost, eligible_at
    from sluice.tasks line
    where line.queue = wanted.queue and line.task_type = wanted.task_type
      and line.capabilities = wanted.capabilities::text[] and line.priority = wanted.priority
      and line.status = 'queued'
      and (line.eligible_at, line.seq) >= (
        case
          when wanted.from_ms = '-infinity' then '-infinity'
          else timestamptz 'epoch' + round(wanted.from_ms * 1000) * interval '1 microsecond'
        end,
        wanted.from_seq
      )
    order by line.eligible_at, line.seq
    limit wanted.most
  ) as task`);

interface LineRow extends Omit<ReadyTaskRow, keyof WindowRow> {
  readonly n: number;
}

/** Line by line, oldest first in each. */
export async function readLines(
  db: Queryable,
  wanted: readonly WantedFromLine[],
  now: Instant,
): Promise<ReadyRow[][]> {
  const rows = await db.query<LineRow>(readLinesSql, [
    column(wanted, ({ window }) => window.lane.queue),
    column(wanted, ({ window }) => window.lane.taskType),
    column(wanted, ({ window }) => arrayLiteral(window.lane.capabilities)),
    column(wanted, ({ window }) => rankOf(window.priority)),
    column(wanted, ({ from }) => from.eligibleAtMs),
    column(wanted, ({ from }) => from.seq),
    column(wanted, ({ limit }) => limit),
    now,
  ]);
  const lines = wanted.map((): ReadyRow[] => []);
  for (const row of rows) {
    const window = wanted[row.n - 1]?.window;
    if (window !== undefined) lines[row.n - 1]?.push(readyIn(window, row));
  }
  return lines;
}

/** Index: tasks_timed. Locked rows are skipped: whoever holds one is about to change it. */
const wakeDueSql = `
update sluice.tasks task
set status = 'queued', waits_for = null, queued_at = clock.now
from
  (select coalesce($2::timestamptz, now()) as now) as clock,
  lateral (
    select ctid as place
    from sluice.tasks
    where waits_for = 'time' and run_at <= clock.now
    order by run_at
    limit $1
    for no key update skip locked
  ) as due
where task.ctid = due.place
returning
  task.id, task.queue, task.task_type, task.capabilities, task.priority, task.seq, task.cost,
  date_part('epoch', clock.now - task.eligible_at) * 1000 as age_ms,
  date_part('epoch', task.eligible_at) * 1000 as eligible_ms`;

/** Those whose time has come are in line from now on, each at the place that its age gives it. */
export async function wakeDue(db: Queryable, limit: number, now: Instant): Promise<ReadyRow[]> {
  const rows = await db.query<ReadyTaskRow>(wakeDueSql, [limit, now]);
  return rows.map(readyOf);
}

/** Index: tasks_timed, one entry. */
const nextDueSql = `
select date_part('epoch', run_at - coalesce($1::timestamptz, now())) * 1000 as due_in_ms
from sluice.tasks
where waits_for = 'time'
order by run_at
limit 1`;

/** Null: nothing waits for a time. 0 or less: something is due already. */
export async function findNextDue(db: Queryable, now: Instant): Promise<number | null> {
  const [next] = await db.query<{ readonly due_in_ms: number }>(nextDueSql, [now]);
  return next?.due_in_ms ?? null;
}
