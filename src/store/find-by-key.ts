import { instantOf, type TaskId } from '../domain/ids.js';
import { priorityOf } from '../domain/priority.js';
import type { TaskState } from '../domain/task-state.js';
import { column } from './columns.js';
import type { Instant, Queryable } from './database.js';
import type { NewTask, Submitted } from './new-task.js';

interface KnownRow {
  readonly draft_id: TaskId;
  readonly task_id: TaskId;
  readonly same: boolean;
  readonly status: TaskState | null;
  readonly queue: string | null;
  readonly priority: number | null;
  readonly trace_id: string | null;
  readonly created_at: Date | null;
}

/** By a statement of its own: the one that lost can't see the row that it waited for. */
const findByKeySql = `
select draft.id as draft_id, held.task_id, held.fingerprint = draft.fingerprint as same,
  task.status, task.queue, task.priority, task.trace_id, task.created_at
from unnest($1::uuid[], $2::text[], $3::text[], $4::bytea[]) as draft (id, scope, key, fingerprint)
cross join lateral (
  select task_id, fingerprint from sluice.idempotency_keys
  where scope = draft.scope and key = draft.key
    and expires_at > coalesce($5::timestamptz, now())
  offset 0
) as held
left join lateral (
  select status, queue, priority, trace_id, created_at
  from sluice.tasks where id = held.task_id
  union all
  select status, queue, priority, trace_id, created_at
  from sluice.task_history where id = held.task_id
) as task on true`;

export async function findByKey(
  db: Queryable,
  tasks: readonly NewTask[],
  now: Instant,
): Promise<Map<TaskId, Submitted>> {
  const rows = await db.query<KnownRow>(findByKeySql, [
    column(tasks, (task) => task.taskId),
    column(tasks, (task) => task.idempotency?.scope ?? null),
    column(tasks, (task) => task.idempotency?.key ?? null),
    column(tasks, (task) => task.idempotency?.fingerprint ?? null),
    now,
  ]);
  const rowOf = new Map(rows.map((row) => [row.draft_id, row]));
  return new Map(
    tasks.flatMap((task) => {
      const row = rowOf.get(task.taskId);
      return row === undefined ? [] : [[task.taskId, knownOf(row, task)]];
    }),
  );
}

/**
 * A task that outlived its retention sooner than its key has left only the key: it had ended, and
 * its fingerprint says that it was submitted as this one is.
 */
function knownOf(row: KnownRow, draft: NewTask): Submitted {
  if (!row.same) return { kind: 'conflict', taskId: row.task_id };
  return {
    kind: 'existing',
    taskId: row.task_id,
    status: row.status ?? 'completed',
    queue: row.queue ?? draft.queue,
    priority: row.priority === null ? draft.priority : priorityOf(row.priority),
    trace: row.trace_id,
    createdAt: row.created_at ?? new Date(instantOf(row.task_id)),
  };
}
