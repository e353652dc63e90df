import type { Lease, TaskId, WorkerId } from '../domain/ids.js';
import type { Lane } from '../domain/lane.js';
import { priorityOf, type Priority } from '../domain/priority.js';
import type { Cost } from '../domain/queue-settings.js';
import type { Held } from '../protocol/workers-api.js';
import { heldColumns, jsonColumn, realOrNull, sparseColumn } from './columns.js';
import { prepared, type Database, type Instant, type Queryable } from './database.js';
import { finishFenced, type FinishedRow } from './finish-members.js';
import { costOf } from './task-row.js';

export interface Completion extends Held {
  readonly resultJson: string | null;
  readonly usageJson: string | null;
  readonly executionSeconds: number | null;
  /** Whoever knows the attempt need not have it read. */
  readonly known?: KnownAttempt | null;
}

/** What whoever claimed a task, straight into executing, knows of the attempt: it stays so. */
export interface KnownAttempt {
  readonly lane: Lane;
  readonly priority: Priority;
  readonly cost: Cost;
  readonly workerId: WorkerId;
  readonly attempt: number;
  readonly trace: string | null;
  readonly startedAtMs: number;
}

/** What history keeps as it was among the living. */
const keptColumns = `
    id, seq, queue, task_type, capabilities, priority, created_at, eligible_at, run_at, queued_at,
    assigned_at, started_at, dispatch_deadline_seconds, timeout_seconds, max_retries, retry_count,
    attempt, deferrals, returns, lease, worker_id, workflow_id, halts_workflow, idempotency_key,
    cost, user_id, tags, trace_id, owner, progress_percent, progress_message, past_attempts`;

/**
 * From the living to history, fenced by the lease. Members of workflows are left out unless asked
 * for ($7): they need the lock of their workflow first, and the others must not pay for it; they
 * are counted at the end of their transaction. The count comes last, after the history: others
 * wait for its row until this one commits.
 */
const moveSql = `
with done as (
  delete from sluice.tasks task
  using
    rows from (
      unnest($1::uuid[], $2::uuid[], $4::text[], $5::real[]), json_array_elements($3::json)
    ) as report (task_id, task_lease, usage, execution_seconds, result),
    lateral (select ctid as place from sluice.tasks where id = report.task_id offset 0) as found
  where task.ctid = found.place and task.lease = report.task_lease
    and (task.workflow_id is null or $7)
  returning ${keptColumns}, status, usage, execution_seconds, result
), kept as (
  insert into sluice.task_history (
    ${keptColumns}, status, ended_at, usage, execution_seconds, result
  )
  select
    ${keptColumns}, 'completed', coalesce($6::timestamptz, now()), usage::json, execution_seconds,
    result
  from done
  returning queue, lease
), counted as (
  select
    case when not $7 then sluice.count_ended(array_agg(queue)) end,
    date_part('epoch', coalesce($6::timestamptz, now())) * 1000 as now_ms,
    case when count(*) < cardinality($1::uuid[]) then
      coalesce(array_agg(lease), '{}')
    end as leases
  from kept
)`;

const completeTasksSql = prepared(`${moveSql}
select
  id, lease, queue, task_type, capabilities, priority, cost, worker_id, workflow_id, attempt, trace_id,
  status, now_ms - date_part('epoch', coalesce(started_at, assigned_at)) * 1000 as run_ms
from done cross join counted`);

/** Of attempts that are known, Postgres says only whether: usually all, and then it names none. */
const completeKnownSql = prepared(`${moveSql}
select * from counted`);

interface Row {
  readonly id: TaskId;
  readonly lease: Lease;
  readonly queue: string;
  readonly task_type: string;
  readonly capabilities: readonly string[];
  readonly priority: number;
  readonly cost: Cost | null;
  readonly worker_id: WorkerId;
  readonly workflow_id: string | null;
  readonly attempt: number;
  readonly trace_id: string | null;
  readonly status: 'assigned' | 'executing';
  readonly run_ms: number;
}

interface KnownAnswer {
  readonly now_ms: number;
  /** Null: all of them. */
  readonly leases: readonly Lease[] | null;
}

type KnownCompletion = Completion & { readonly known: KnownAttempt };

export interface CompletedRow extends FinishedRow {
  readonly lane: Lane;
}

/** Those that don't come back have lost their lease. */
export function completeTasks(
  db: Database,
  completions: readonly Completion[],
  now: Instant,
): Promise<CompletedRow[]> {
  return finishFenced(db, completions, now, complete, () => true);
}

async function complete(
  db: Queryable,
  completions: readonly Completion[],
  now: Instant,
  withMembers: boolean,
): Promise<CompletedRow[]> {
  const parameters = [
    ...heldColumns(completions),
    jsonColumn(completions, (completion) => completion.resultJson),
    sparseColumn(completions, (completion) => completion.usageJson),
    sparseColumn(completions, ({ executionSeconds }) => realOrNull(executionSeconds)),
    now,
    withMembers,
  ];
  if (!completions.every(isKnown)) {
    return (await db.query<Row>(completeTasksSql, parameters)).map(completedOf);
  }
  const [answer] = await db.query<KnownAnswer>(completeKnownSql, parameters);
  return answer === undefined ? [] : knownCompleted(completions, answer);
}

function isKnown(completion: Completion): completion is KnownCompletion {
  return completion.known !== undefined && completion.known !== null;
}

function knownCompleted(
  completions: readonly KnownCompletion[],
  { now_ms: nowMs, leases }: KnownAnswer,
): CompletedRow[] {
  const done = leases === null ? null : new Set(leases);
  const rows: CompletedRow[] = [];
  for (const { taskId, lease, known } of completions) {
    if (done?.delete(lease) === false) continue;
    rows.push(knownRow(taskId, lease, known, nowMs));
  }
  return rows;
}

/**
 * Field by field: with the rest of what is known spread into it, a row took 3.3 kB to make instead of
 * 0.16, which was more than half of all that outlived a collection of the young.
 */
function knownRow(taskId: TaskId, lease: Lease, known: KnownAttempt, nowMs: number): CompletedRow {
  const { lane, priority, cost, workerId, attempt, trace, startedAtMs } = known;
  return {
    taskId,
    lease,
    queue: lane.queue,
    taskType: lane.taskType,
    lane,
    priority,
    cost,
    workerId,
    workflowId: null,
    attempt,
    trace,
    from: 'executing',
    runMs: nowMs - startedAtMs,
    released: false,
  };
}

function completedOf(row: Row): CompletedRow {
  return {
    taskId: row.id,
    lease: row.lease,
    queue: row.queue,
    taskType: row.task_type,
    lane: { queue: row.queue, taskType: row.task_type, capabilities: row.capabilities },
    priority: priorityOf(row.priority),
    cost: costOf(row.cost),
    workerId: row.worker_id,
    workflowId: row.workflow_id,
    attempt: row.attempt,
    trace: row.trace_id,
    from: row.status,
    runMs: row.run_ms,
    released: false,
  };
}
