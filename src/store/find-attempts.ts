import type { Lease, TaskId, WorkerId } from '../domain/ids.js';
import { priorityOf, type Priority } from '../domain/priority.js';
import type { Cost } from '../domain/queue-settings.js';
import { hasEnded, type TaskState } from '../domain/task-state.js';
import type { Held } from '../protocol/workers-api.js';
import { column, heldColumns } from './columns.js';
import type { Queryable } from './database.js';
import { costOf, type PastAttemptJson } from './task-row.js';

export interface AttemptRow extends Held {
  readonly priority: Priority;
  readonly queue: string;
  readonly taskType: string;
  readonly retryCount: number;
  readonly maxRetries: number;
  readonly deferrals: number;
  readonly returns: number;
  readonly timeoutSeconds: number;
  readonly workerId: WorkerId;
  readonly workflowId: string | null;
  readonly status: 'assigned' | 'executing';
  readonly attempt: number;
  readonly begunAt: Date;
  readonly cost: Cost;
}

export interface AttemptTaskRow {
  readonly id: TaskId;
  readonly lease: Lease;
  readonly priority: number;
  readonly queue: string;
  readonly task_type: string;
  readonly retry_count: number;
  readonly max_retries: number;
  readonly deferrals: number;
  readonly returns: number;
  readonly timeout_seconds: number;
  readonly worker_id: WorkerId;
  readonly workflow_id: string | null;
  readonly status: 'assigned' | 'executing';
  readonly attempt: number;
  readonly begun_at: Date;
  readonly cost: Cost | null;
}

/** Of `sluice.tasks task`: what `attemptOf` reads. */
export const attemptColumns = `
  task.id, task.lease, task.priority, task.queue, task.task_type, task.retry_count, task.max_retries,
  task.deferrals, task.returns, task.timeout_seconds, task.worker_id, task.workflow_id,
  task.status, task.attempt, coalesce(task.started_at, task.assigned_at) as begun_at, task.cost`;

export function attemptOf(row: AttemptTaskRow): AttemptRow {
  return {
    taskId: row.id,
    lease: row.lease,
    priority: priorityOf(row.priority),
    queue: row.queue,
    taskType: row.task_type,
    retryCount: row.retry_count,
    maxRetries: row.max_retries,
    deferrals: row.deferrals,
    returns: row.returns,
    timeoutSeconds: row.timeout_seconds,
    workerId: row.worker_id,
    workflowId: row.workflow_id,
    status: row.status,
    attempt: row.attempt,
    begunAt: row.begun_at,
    cost: costOf(row.cost),
  };
}

const findAttemptsSql = `
select ${attemptColumns}
from
  unnest($1::uuid[], $2::uuid[]) as held (id, lease),
  lateral (select * from sluice.tasks where id = held.id offset 0) as task
where task.lease = held.lease`;

/** Those whose lease is good. */
export async function findAttempts(db: Queryable, held: readonly Held[]): Promise<AttemptRow[]> {
  const rows = await db.query<AttemptTaskRow>(findAttemptsSql, heldColumns(held));
  return rows.map(attemptOf);
}

export interface LeasedRow {
  readonly lease: Lease;
  readonly queue: string;
  readonly cost: Cost;
  readonly status: 'assigned' | 'executing';
}

type LeasedTaskRow = Pick<AttemptTaskRow, 'id' | 'lease' | 'queue' | 'cost' | 'status'>;

const findLeasedSql = `
select task.id, task.lease, task.queue, task.cost, task.status
from
  unnest($1::uuid[]) as wanted (id),
  lateral (select * from sluice.tasks where id = wanted.id offset 0) as task
where task.lease is not null`;

/** Those that somebody holds now. */
export async function findLeased(
  db: Queryable,
  taskIds: readonly TaskId[],
): Promise<ReadonlyMap<TaskId, LeasedRow>> {
  const rows = await db.query<LeasedTaskRow>(findLeasedSql, [column(taskIds, (id) => id)]);
  return new Map(
    rows.map(({ id, lease, queue, cost, status }) => [
      id,
      { lease, queue, cost: costOf(cost), status },
    ]),
  );
}

/** History is found by its id in every partition: this is asked only for ends that nobody told of. */
const findUsageSql = `
select ended.id, ended.cost, ended.usage
from unnest($1::uuid[]) as wanted (id), sluice.task_history as ended
where ended.id = wanted.id and ended.usage is not null`;

export interface Usage {
  readonly reserved: Cost;
  readonly usage: Cost;
}

/** What completed tasks really cost, where their workers said so. */
export async function findUsage(
  db: Queryable,
  taskIds: readonly TaskId[],
): Promise<ReadonlyMap<TaskId, Usage>> {
  const rows = await db.query<{ id: TaskId; cost: Cost | null; usage: Cost }>(findUsageSql, [
    column(taskIds, (id) => id),
  ]);
  return new Map(rows.map(({ id, cost, usage }) => [id, { reserved: costOf(cost), usage }]));
}

const findNeverClaimedSql = `
select task.id
from
  unnest($1::uuid[]) as wanted (id),
  lateral (select * from sluice.tasks where id = wanted.id offset 0) as task
where task.lease is null and task.attempt = 0`;

/** Those that nobody has ever held. */
export async function findNeverClaimed(
  db: Queryable,
  taskIds: readonly TaskId[],
): Promise<ReadonlySet<TaskId>> {
  const rows = await db.query<{ id: TaskId }>(findNeverClaimedSql, [column(taskIds, (id) => id)]);
  return new Set(rows.map(({ id }) => id));
}

/**
 * Of the living and of those in history. History is found by its id in every partition: this is
 * asked only for a report that was refused.
 */
const findPastLeasesSql = `
select held.id, held.lease, found.lease as last_lease, found.status, found.past_attempts
from unnest($1::uuid[], $2::uuid[]) as held (id, lease),
  lateral (
    select lease, status, past_attempts from sluice.tasks where id = held.id
    union all
    select lease, status, past_attempts from sluice.task_history where id = held.id
  ) as found`;

interface PastLeaseRow {
  readonly id: TaskId;
  readonly lease: Lease;
  readonly last_lease: Lease | null;
  readonly status: TaskState;
  readonly past_attempts: readonly PastAttemptJson[];
}

export interface SettledReport extends Held {
  /** What the task became when its attempt was reported the first time. */
  readonly status: TaskState;
}

/** The reports that were settled before: the answer to the same report again is the same. */
export async function findSettled(db: Queryable, held: readonly Held[]): Promise<SettledReport[]> {
  const rows = await db.query<PastLeaseRow>(findPastLeasesSql, heldColumns(held));
  return rows.flatMap((row) => {
    const status = settledStatus(row);
    return status === null ? [] : { taskId: row.id, lease: row.lease, status };
  });
}

/** An attempt that was ended for its worker, as lapsed or timed out, was never reported. */
const reportedOutcomes: ReadonlySet<string> = new Set(['failed', 'deferred']);

/** Read here and not in SQL: json there stumbles over a \\u0000 in any error message of the task. */
function settledStatus(row: PastLeaseRow): TaskState | null {
  if (row.last_lease === row.lease) return hasEnded(row.status) ? row.status : null;
  const past = row.past_attempts.find((attempt) => attempt.lease === row.lease);
  return past !== undefined && reportedOutcomes.has(past.outcome) ? past.became : null;
}
