import type { Lease, TaskId, WorkerId } from '../domain/ids.js';
import { priorityOf, type Priority } from '../domain/priority.js';
import type { Held } from '../protocol/workers-api.js';
import { column, heldColumns, realOrNull, sparseColumn } from './columns.js';
import type { Instant, Queryable } from './database.js';
import { writeFenced } from './write-fenced.js';

interface WrittenRow {
  readonly lease: Lease;
}

interface StartedTaskRow extends WrittenRow {
  readonly id: TaskId;
  readonly queue: string;
  readonly task_type: string;
  readonly priority: number;
  readonly attempt: number;
  readonly worker_id: WorkerId;
  readonly trace_id: string | null;
  readonly was: 'assigned' | 'executing';
}

export interface StartedRow {
  readonly taskId: TaskId;
  readonly lease: Lease;
  readonly queue: string;
  readonly taskType: string;
  readonly priority: Priority;
  readonly attempt: number;
  readonly workerId: WorkerId;
  readonly trace: string | null;
  /** False: its start was said before. */
  readonly isFirst: boolean;
}

/** A start that is said again keeps its first instant. */
const startTasksSql = `
update sluice.tasks task
set
  status = 'executing',
  started_at = coalesce(task.started_at, clock.now),
  lapses_at = case
    when task.status = 'executing' then task.lapses_at
    else clock.now + task.timeout_seconds * interval '1 second'
  end
from
  (select coalesce($3::timestamptz, now()) as now) as clock,
  unnest($1::uuid[], $2::uuid[]) as held (id, lease),
  lateral (
    select ctid as place, status as was from sluice.tasks where id = held.id offset 0
  ) as found
where task.ctid = found.place and task.lease = held.lease
returning
  task.id, task.lease, task.queue, task.task_type, task.priority, task.attempt, task.worker_id,
  task.trace_id, found.was`;

/** Those that don't come back have lost their lease. */
export async function startTasks(
  db: Queryable,
  held: readonly Held[],
  now: Instant,
): Promise<StartedRow[]> {
  const started = await writeFenced(db, held, (items) =>
    db.query<StartedTaskRow>(startTasksSql, [...heldColumns(items), now]),
  );
  return started.map((row) => ({
    taskId: row.id,
    lease: row.lease,
    queue: row.queue,
    taskType: row.task_type,
    priority: priorityOf(row.priority),
    attempt: row.attempt,
    workerId: row.worker_id,
    trace: row.trace_id,
    isFirst: row.was === 'assigned',
  }));
}

export interface Progress extends Held {
  readonly percent: number;
  readonly message: string | null;
}

const recordProgressSql = `
update sluice.tasks task
set progress_percent = report.percent, progress_message = report.message
from
  unnest($1::uuid[], $2::uuid[], $3::real[], $4::text[]) as report (id, lease, percent, message),
  lateral (select ctid as place from sluice.tasks where id = report.id offset 0) as found
where task.ctid = found.place and task.lease = report.lease
returning task.lease`;

/** Of several reports of one attempt the last counts. */
export async function recordProgress(db: Queryable, items: readonly Progress[]): Promise<Lease[]> {
  const latest = [...new Map(items.map((item) => [item.lease, item])).values()];
  const recorded = await writeFenced(db, latest, (reports) =>
    db.query<WrittenRow>(recordProgressSql, [
      ...heldColumns(reports),
      column(reports, (report) => realOrNull(report.percent)),
      sparseColumn(reports, (report) => report.message),
    ]),
  );
  return recorded.map((row) => row.lease);
}
