import type { Lease, TaskId, WorkerId } from '../domain/ids.js';
import type { JsonObject } from '../domain/json.js';
import { priorityOf, type Priority } from '../domain/priority.js';
import type { Cost } from '../domain/queue-settings.js';
import { column, sparseColumn } from './columns.js';
import { prepared, type Instant, type Queryable } from './database.js';
import { costOf } from './task-row.js';

export interface Claim {
  readonly taskId: TaskId;
  readonly workerId: WorkerId;
  /** Straight into executing; else assigned, until the worker says start. */
  readonly start: boolean;
  /** Whoever knows its parameters already need not have them read. */
  readonly parametersJson?: string | null;
}

export interface ClaimedRow {
  readonly taskId: TaskId;
  readonly taskType: string;
  readonly queue: string;
  readonly parameters: JsonObject;
  readonly timeoutSeconds: number;
  readonly attempt: number;
  readonly lease: Lease;
  readonly priority: Priority;
  readonly retryCount: number;
  readonly workflowId: string | null;
  readonly traceId: string | null;
  readonly workerId: WorkerId;
  readonly lapsesAt: Date;
  /** Since it was eligible. */
  readonly waitedMs: number;
  readonly cost: Cost;
}

/**
 * Compare-and-set. Locked rows are skipped, not waited for: whoever holds one is about to change
 * it. The status is that of the locked row; as a condition on the table, it would invite the planner
 * to read all that is queued. The parameters come from the one partition that the id names.
 *
 * The generation is asked for in a subquery of its own, which the planner makes a gate before
 * everything else: it runs once, and no row is looked at before its answer.
 */
const claimTasksSql = prepared(`
update sluice.tasks task
set
  status = case when claim.start then 'executing' else 'assigned' end,
  lease = gen_random_uuid(),
  worker_id = claim.worker_id,
  attempt = task.attempt + 1,
  assigned_at = clock.now,
  started_at = case when claim.start then clock.now end,
  lapses_at = clock.now + case
    when claim.start then task.timeout_seconds * interval '1 second'
    else $5::float8 * interval '1 millisecond'
  end
from
  (select coalesce($6::timestamptz, now()) as now) as clock,
  unnest($1::uuid[], $2::uuid[], $3::boolean[], $7::boolean[])
    as claim (id, worker_id, start, is_known),
  lateral (
    select ctid as place, status from sluice.tasks where id = claim.id offset 0
    for no key update skip locked
  ) as found
where
  (select sluice.is_generation($4::bigint))
  and task.ctid = found.place and found.status = 'queued'
returning
  task.id, task.task_type, task.queue, task.timeout_seconds, task.attempt, task.lease,
  task.priority, task.retry_count, task.workflow_id, task.trace_id, task.worker_id, task.cost,
  date_part('epoch', task.lapses_at) * 1000 as lapses_ms,
  date_part('epoch', clock.now - task.eligible_at) * 1000 as waited_ms,
  case when claim.is_known is null then
    (select parameters from sluice.task_inputs where task_id = task.id)
  end as parameters`);

interface Row {
  readonly id: TaskId;
  readonly task_type: string;
  readonly queue: string;
  readonly timeout_seconds: number;
  readonly attempt: number;
  readonly lease: Lease;
  readonly priority: number;
  readonly retry_count: number;
  readonly workflow_id: string | null;
  readonly trace_id: string | null;
  readonly worker_id: WorkerId;
  readonly cost: Cost | null;
  readonly lapses_ms: number;
  readonly waited_ms: number;
  /** Null: they are known. */
  readonly parameters: JsonObject | null;
}

/**
 * Those that don't come back were refused: no longer queued, in somebody's hands, or all of them,
 * when this is not the generation any more.
 */
export async function claimTasks(
  db: Queryable,
  claims: readonly Claim[],
  generation: number,
  unstartedMs: number,
  now: Instant,
): Promise<ClaimedRow[]> {
  const known = new Map<TaskId, string>();
  for (const { taskId, parametersJson } of claims) {
    if (parametersJson) known.set(taskId, parametersJson);
  }
  const rows = await db.query<Row>(claimTasksSql, [
    column(claims, (claim) => claim.taskId),
    column(claims, (claim) => claim.workerId),
    column(claims, (claim) => claim.start),
    generation,
    unstartedMs,
    now,
    sparseColumn(claims, ({ taskId }) => (known.has(taskId) ? true : null)),
  ]);
  return rows.map((row) => ({
    taskId: row.id,
    taskType: row.task_type,
    queue: row.queue,
    parameters: row.parameters ?? (JSON.parse(known.get(row.id) ?? '{}') as JsonObject),
    timeoutSeconds: row.timeout_seconds,
    attempt: row.attempt,
    lease: row.lease,
    priority: priorityOf(row.priority),
    retryCount: row.retry_count,
    workflowId: row.workflow_id,
    traceId: row.trace_id,
    workerId: row.worker_id,
    lapsesAt: new Date(row.lapses_ms),
    waitedMs: row.waited_ms,
    cost: costOf(row.cost),
  }));
}
