import { rankOf } from '../domain/priority.js';
import { arrayLiteral, column } from './columns.js';
import { prepared, type Instant, type Queryable } from './database.js';
import {
  readyOf,
  windowOf,
  type BacklogWindow,
  type ReadyRow,
  type ReadyTaskRow,
  type WindowRow,
} from './task-row.js';

export interface WantedFromBacklog extends BacklogWindow {
  readonly limit: number;
}

/**
 * The oldest of each window. Index: tasks_line, from the first pending entry of the window on, so
 * the cost is what is fed, whatever the backlog. Two feeders share a window without waiting.
 */
const feedBacklogSql = prepared(`
update sluice.tasks task
set status = 'queued', waits_for = null, queued_at = clock.now
from
  (select coalesce($6::timestamptz, now()) as now) as clock,
  unnest($1::text[], $2::text[], $3::text[], $4::smallint[], $5::integer[])
    as wanted (queue, task_type, capabilities, priority, room),
  lateral (
    select ctid as place
    from sluice.tasks line
    where line.queue = wanted.queue and line.task_type = wanted.task_type
      and line.capabilities = wanted.capabilities::text[] and line.priority = wanted.priority
      and line.status = 'pending' and line.waits_for = 'room'
    order by eligible_at, seq
    limit wanted.room
    for no key update skip locked
  ) as chosen
where task.ctid = chosen.place
returning
  task.id, task.queue, task.task_type, task.capabilities, task.priority, task.seq, task.cost,
  date_part('epoch', clock.now - task.eligible_at) * 1000 as age_ms,
  date_part('epoch', task.eligible_at) * 1000 as eligible_ms`);

/** Pending to queued, in the order of the windows and oldest first in each. */
export async function feedBacklog(
  db: Queryable,
  wanted: readonly WantedFromBacklog[],
  now: Instant,
): Promise<ReadyRow[]> {
  const rows = await db.query<ReadyTaskRow>(feedBacklogSql, [
    column(wanted, ({ lane }) => lane.queue),
    column(wanted, ({ lane }) => lane.taskType),
    column(wanted, ({ lane }) => arrayLiteral(lane.capabilities)),
    column(wanted, ({ priority }) => rankOf(priority)),
    column(wanted, ({ limit }) => limit),
    now,
  ]);
  return rows.map(readyOf);
}

/** Index: tasks_timed. */
const wakeDueSql = `
with woken as (
  update sluice.tasks task
  set waits_for = 'room'
  from (
    select ctid as place
    from sluice.tasks
    where waits_for = 'time' and run_at <= coalesce($2::timestamptz, now())
    order by run_at
    limit $1
    for no key update skip locked
  ) as due
  where task.ctid = due.place
  returning queue, task_type, capabilities, priority
)
select queue, task_type, capabilities, priority, count(*) as count
from woken
group by queue, task_type, capabilities, priority`;

/** Index: tasks_timed, one entry. */
const nextDueSql = `
select date_part('epoch', run_at - coalesce($1::timestamptz, now())) * 1000 as due_in_ms
from sluice.tasks
where waits_for = 'time'
order by run_at
limit 1`;

/** Indexes: tasks_line and tasks_timed, one entry of each. */
const lookForWorkSql = `
select
  exists (select from sluice.tasks where status = 'queued' or waits_for = 'room') as line,
  (
    select date_part('epoch', run_at - coalesce($1::timestamptz, now())) * 1000
    from sluice.tasks where waits_for = 'time' order by run_at limit 1
  ) as due_in_ms`;

export interface WorkLook {
  /** Something is in line, queued or waiting for room. */
  readonly line: boolean;
  /** Null: nothing waits for a time. */
  readonly nextDueInMs: number | null;
}

/** Whether it is worth looking for backlog, or for what is due: one statement while nothing is. */
export async function lookForWork(db: Queryable, now: Instant): Promise<WorkLook> {
  const [row] = await db.query<{ line: boolean; due_in_ms: number | null }>(lookForWorkSql, [now]);
  return { line: row?.line === true, nextDueInMs: row?.due_in_ms ?? null };
}

export interface Woken {
  readonly woken: number;
  readonly windows: BacklogWindow[];
  /** Null: nothing waits for a time. 0 or less: more is due already. */
  readonly nextDueInMs: number | null;
}

/** Those whose time has come wait for room from now on. */
export async function wakeDue(db: Queryable, limit: number, now: Instant): Promise<Woken> {
  const windows = await db.query<WindowRow & { readonly count: number }>(wakeDueSql, [limit, now]);
  const [next] = await db.query<{ readonly due_in_ms: number }>(nextDueSql, [now]);
  return {
    woken: windows.reduce((sum, window) => sum + window.count, 0),
    windows: windows.map(windowOf),
    nextDueInMs: next?.due_in_ms ?? null,
  };
}
