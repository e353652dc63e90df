import type { AttemptError, AttemptOutcome } from '../domain/attempt-error.js';
import type { Lease, TaskId, WorkerId } from '../domain/ids.js';
import { priorityOf } from '../domain/priority.js';
import type { Cost } from '../domain/queue-settings.js';
import type { Held } from '../protocol/workers-api.js';
import { column, heldColumns, sparseColumn } from './columns.js';
import type { Database, Instant, Queryable } from './database.js';
import { finishFenced, type FinishedRow } from './finish-members.js';
import {
  attemptErrorToJson,
  costOf,
  windowOf,
  type LineWindow,
  type PastAttemptJson,
  type WindowRow,
} from './task-row.js';

export interface AttemptEnd extends Held {
  readonly outcome: AttemptOutcome;
  readonly error: AttemptError | null;
  readonly next:
    | {
        readonly kind: 'pending';
        readonly delayMs: number;
        readonly costsRetry: boolean;
        readonly countsAs: 'deferral' | 'return' | null;
        readonly timeoutSeconds: number;
      }
    | { readonly kind: 'dead_letter'; readonly reason: string };
}

export interface EndedRow extends FinishedRow {
  readonly to: 'pending' | 'dead_letter';
  readonly window: LineWindow;
}

const pastAttemptsKept = 200;

/**
 * Back to pending, or to the dead letters. Left out unless asked for ($13): a dead letter of a
 * workflow, which needs the workflow's lock. One that halts those behind it may still let go a
 * replayed one in front of it. The entry in past_attempts is built from the
 * row and the report; the error goes in as it came, since json must not look into it.
 */
const endAttemptsSql = `
with changed as (
  update sluice.tasks task
  set
    status = ending.became,
    waits_for = case when ending.became = 'pending' then 'time' end,
    run_at = case
      when ending.delay_ms > 0 then clock.now + ending.delay_ms * interval '1 millisecond'
      when ending.became = 'pending' then coalesce(task.run_at, clock.now)
      else task.run_at
    end,
    queued_at = null,
    assigned_at = null,
    started_at = null,
    lapses_at = null,
    lease = null,
    worker_id = null,
    ended_at = case when ending.became = 'dead_letter' then clock.now end,
    error = case when ending.became = 'dead_letter' then ending.error::json end,
    progress_percent = case when ending.became = 'dead_letter' then task.progress_percent end,
    progress_message = case when ending.became = 'dead_letter' then task.progress_message end,
    timeout_seconds = coalesce(ending.timeout_seconds, task.timeout_seconds),
    retry_count = task.retry_count + coalesce(ending.retries, 0),
    deferrals = task.deferrals + coalesce(ending.deferrals, 0),
    returns = task.returns + coalesce(ending.returns, 0),
    past_attempts = (
      task.past_attempts || json_build_object(
        'attempt', task.attempt,
        'worker_id', task.worker_id,
        'lease', task.lease,
        'queued_at', task.queued_at,
        'assigned_at', task.assigned_at,
        'started_at', task.started_at,
        'ended_at', clock.now,
        'outcome', ending.outcome,
        'error', ending.error::json,
        'became', ending.became,
        'reason', ending.reason
      )
    )[greatest(1, cardinality(task.past_attempts) + 2 - ${pastAttemptsKept}):]
  from
    (select coalesce($12::timestamptz, now()) as now) as clock,
    unnest(
      $1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::float8[],
      $8::integer[], $9::smallint[], $10::smallint[], $11::smallint[]
    ) as ending (
      id, lease, outcome, error, became, reason, delay_ms,
      timeout_seconds, retries, deferrals, returns
    ),
    lateral (select ctid as place from sluice.tasks where id = ending.id offset 0) as found
  where task.ctid = found.place and task.lease = ending.lease
    and ($13 or task.workflow_id is null or ending.became = 'pending')
  returning
    task.id, task.queue, task.task_type, task.capabilities, task.priority, task.cost,
    task.workflow_id, task.attempt, task.trace_id, task.waits_for,
    -- What the row no longer says: who held it, and since when.
    task.past_attempts[cardinality(task.past_attempts)] as past
), counted as (
  select case when not $13 then
    sluice.count_ended(array_agg(queue) filter (where waits_for is null))
  end
  from changed
), noted as (
  insert into sluice.dead_letter_changes (task_id) select id from changed where waits_for is null
)
select changed.* from changed cross join counted`;

interface EndedTaskRow extends WindowRow {
  readonly id: TaskId;
  readonly cost: Cost | null;
  readonly workflow_id: string | null;
  readonly attempt: number;
  readonly trace_id: string | null;
  readonly waits_for: 'time' | null;
  readonly past: PastAttemptJson;
}

/** Those that don't come back have lost their lease. */
export function endAttempts(
  db: Database,
  ends: readonly AttemptEnd[],
  now: Instant,
): Promise<EndedRow[]> {
  return finishFenced(db, ends, now, end, ({ to }) => to === 'dead_letter');
}

async function end(
  db: Queryable,
  ends: readonly AttemptEnd[],
  now: Instant,
  withMembers: boolean,
): Promise<EndedRow[]> {
  const rows = await db.query<EndedTaskRow>(endAttemptsSql, [
    ...heldColumns(ends),
    column(ends, ({ outcome }) => outcome),
    sparseColumn(ends, ({ error }) => error && JSON.stringify(attemptErrorToJson(error))),
    column(ends, ({ next }) => next.kind),
    sparseColumn(ends, ({ next }) => (next.kind === 'dead_letter' ? next.reason : null)),
    sparseColumn(ends, ({ next }) => (next.kind === 'pending' ? next.delayMs : null)),
    sparseColumn(ends, ({ next }) => (next.kind === 'pending' ? next.timeoutSeconds : null)),
    sparseColumn(ends, ({ next }) => (next.kind === 'pending' && next.costsRetry ? 1 : null)),
    sparseColumn(ends, (item) => countOne(item, 'deferral')),
    sparseColumn(ends, (item) => countOne(item, 'return')),
    now,
    withMembers,
  ]);
  return rows.map(endedOf);
}

function endedOf(row: EndedTaskRow): EndedRow {
  const { past } = row;
  return {
    taskId: row.id,
    lease: past.lease as Lease,
    queue: row.queue,
    taskType: row.task_type,
    priority: priorityOf(row.priority),
    cost: costOf(row.cost),
    workerId: past.worker_id as WorkerId,
    workflowId: row.workflow_id,
    attempt: row.attempt,
    trace: row.trace_id,
    from: past.started_at === null ? 'assigned' : 'executing',
    runMs: Date.parse(past.ended_at) - Date.parse(past.started_at ?? past.assigned_at),
    released: false,
    to: row.waits_for === null ? 'dead_letter' : 'pending',
    window: windowOf(row),
  };
}

function countOne({ next }: AttemptEnd, counted: 'deferral' | 'return'): 1 | null {
  return next.kind === 'pending' && next.countsAs === counted ? 1 : null;
}
