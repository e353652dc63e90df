import { rankOf } from '../domain/priority.js';
import { arrayLiteral, column } from './columns.js';
import { prepared, type Queryable } from './database.js';
import { windowOf, type LinePosition, type LineWindow, type WindowRow } from './task-row.js';

/** A part of the line of a window. */
export interface WantedStretch {
  readonly window: LineWindow;
  readonly from: LinePosition;
  /** The first that does not belong to it; null: it goes to the end of the line. */
  readonly to: LinePosition | null;
}

export interface MeasuredStretch {
  readonly count: number;
  /** The first of it, and each that follows `markEvery` later. */
  readonly marks: readonly LinePosition[];
  readonly lastEligibleAtMs: number | null;
  /** The stretch goes on: it was read up to the last mark, which is not counted. */
  readonly isCut: boolean;
}

/**
 * Index: tasks_line, entered at the position and left after $8 entries, so that the cost is what is counted,
 * however long the line is.
 */
const measureSql = prepared(`
select line.n, line.mark_ms, line.mark_seqs, line.last_ms
from
  unnest(
    $1::text[], $2::text[], $3::text[], $4::smallint[], $5::float8[], $6::bigint[],
    $7::float8[], $9::bigint[]
  ) with ordinality
    as wanted (queue, task_type, capabilities, priority, from_ms, from_seq, to_ms, to_seq, nth),
  lateral (
    select
      count(*) as n,
      json_agg(date_part('epoch', eligible_at) * 1000) filter (where place % $10::integer = 1) as mark_ms,
      json_agg(seq) filter (where place % $10::integer = 1) as mark_seqs,
      date_part('epoch', max(eligible_at)) * 1000 as last_ms
    from (
      select eligible_at, seq, row_number() over (order by eligible_at, seq) as place
      from sluice.tasks task
      where task.queue = wanted.queue and task.task_type = wanted.task_type
        and task.capabilities = wanted.capabilities::text[] and task.priority = wanted.priority
        and task.status = 'queued'
        and (task.eligible_at, task.seq) >= (
          case
            when wanted.from_ms = '-infinity' then '-infinity'
            else timestamptz 'epoch' + round(wanted.from_ms * 1000) * interval '1 microsecond'
          end,
          wanted.from_seq
        )
        and (task.eligible_at, task.seq) < (
          case
            when wanted.to_ms = 'infinity' then 'infinity'
            else timestamptz 'epoch' + round(wanted.to_ms * 1000) * interval '1 microsecond'
          end,
          wanted.to_seq
        )
      order by eligible_at, seq
      limit $8::integer
    ) as task
  ) as line
order by wanted.nth`);

interface StretchRow {
  readonly n: number;
  readonly mark_ms: readonly number[] | null;
  readonly mark_seqs: readonly number[] | null;
  readonly last_ms: number | null;
}

/** At most `marks` times `markEvery` of each stretch. */
export async function measureStretches(
  db: Queryable,
  wanted: readonly WantedStretch[],
  { marks, markEvery }: { readonly marks: number; readonly markEvery: number },
): Promise<MeasuredStretch[]> {
  // One more: it is the first of what is left.
  const most = marks * markEvery + 1;
  const rows = await db.query<StretchRow>(measureSql, [
    column(wanted, ({ window }) => window.lane.queue),
    column(wanted, ({ window }) => window.lane.taskType),
    column(wanted, ({ window }) => arrayLiteral(window.lane.capabilities)),
    column(wanted, ({ window }) => rankOf(window.priority)),
    column(wanted, ({ from }) => from.eligibleAtMs),
    column(wanted, ({ from }) => from.seq),
    column(wanted, ({ to }) => to?.eligibleAtMs ?? Number.POSITIVE_INFINITY),
    most,
    column(wanted, ({ to }) => to?.seq ?? 0),
    markEvery,
  ]);
  return rows.map(({ n, mark_ms, mark_seqs, last_ms }) => {
    const isCut = n === most;
    const positions = (mark_ms ?? []).map((eligibleAtMs, index) => ({
      eligibleAtMs,
      seq: mark_seqs?.[index] ?? 0,
    }));
    return { count: isCut ? n - 1 : n, marks: positions, lastEligibleAtMs: last_ms, isCut };
  });
}

/** Index: tasks_line, one look for each window, however many tasks are in it. */
const findWindowsSql = `
with recursive step as (
  select ''::text collate "C" as queue, ''::text collate "C" as task_type,
    '{}'::text[] collate "C" as capabilities, 0::smallint as priority, 0 as n
  union all
  select next.*, step.n + 1
  from step, lateral (
    select queue, task_type, capabilities, priority
    from sluice.tasks
    where status = 'queued'
      and (queue, task_type, capabilities, priority)
        > (step.queue, step.task_type, step.capabilities, step.priority)
    order by queue, task_type, capabilities, priority
    limit 1
  ) as next
  where step.n < $1
)
select queue, task_type, capabilities, priority from step where n > 0`;

/** The windows that have tasks in line, up to so many. */
export async function findWindows(db: Queryable, most: number): Promise<LineWindow[]> {
  return (await db.query<WindowRow>(findWindowsSql, [most])).map(windowOf);
}
