import type { Lease } from '../domain/ids.js';
import type { Held } from '../protocol/workers-api.js';
import { column, heldColumns, realOrNull, sparseColumn } from './columns.js';
import type { Instant, Queryable } from './database.js';
import { writeFenced } from './write-fenced.js';

interface WrittenRow {
  readonly lease: Lease;
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
  lateral (select ctid as place from sluice.tasks where id = held.id offset 0) as found
where task.ctid = found.place and task.lease = held.lease
returning task.lease`;

/** Those that don't come back have lost their lease. */
export async function startTasks(
  db: Queryable,
  held: readonly Held[],
  now: Instant,
): Promise<Lease[]> {
  const started = await writeFenced(db, held, (items) =>
    db.query<WrittenRow>(startTasksSql, [...heldColumns(items), now]),
  );
  return started.map((row) => row.lease);
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
