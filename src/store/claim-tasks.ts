import type { Lease, TaskId, WorkerId } from '../domain/ids.js';
import type { JsonObject } from '../domain/json.js';
import { priorityOf, type Priority } from '../domain/priority.js';
import type { Cost } from '../domain/queue-settings.js';
import { column, sparseColumn } from './columns.js';
import {
  DatabaseAwayError,
  LockedError,
  prepared,
  type Instant,
  type Queryable,
} from './database.js';
import { costOf } from './task-row.js';

export interface Claim {
  readonly taskId: TaskId;
  readonly workerId: WorkerId;
  readonly lease: Lease;
  /** Straight into executing; else assigned, until the worker says start. */
  readonly start: boolean;
  /** Whoever knows what it is need not have it read. */
  readonly known?: KnownTask | null;
}

/** What whoever submitted a task, or read it in line, knows of it. It stays so while it stays in line. */
export interface KnownTask {
  readonly taskType: string;
  readonly queue: string;
  readonly priority: Priority;
  readonly parametersJson: string;
  readonly timeoutSeconds: number;
  readonly traceId: string | null;
  readonly cost: Cost;
  readonly eligibleAtMs: number;
}

export interface ClaimedRow {
  readonly taskId: TaskId;
  readonly taskType: string;
  readonly queue: string;
  /** Null: the row that holds them is missing. */
  readonly parameters: JsonObject | null;
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
const claimSql = `
update sluice.tasks task
set
  status = case when claim.start then 'executing' else 'assigned' end,
  lease = claim.lease,
  worker_id = claim.worker_id,
  attempt = task.attempt + 1,
  assigned_at = clock.now,
  started_at = case when claim.start then clock.now end,
  lapses_at = clock.now + case
    when claim.start then task.timeout_seconds * interval '1 second'
    else $6::float8 * interval '1 millisecond'
  end
from
  (select coalesce($7::timestamptz, now()) as now) as clock,
  unnest($1::uuid[], $2::uuid[], $3::boolean[], $4::uuid[], $8::boolean[])
    as claim (id, worker_id, start, lease, is_known),
  lateral (
    select ctid as place, status, attempt, created_at, queued_at, run_at
    from sluice.tasks where id = claim.id offset 0
    for no key update skip locked
  ) as found
where
  (select sluice.is_generation($5::bigint))
  and task.ctid = found.place and found.status = 'queued'`;

const claimTasksSql = prepared(`${claimSql}
returning
  task.lease, task.task_type, task.queue, task.timeout_seconds, task.attempt,
  task.priority, task.retry_count, task.workflow_id, task.trace_id, task.cost,
  date_part('epoch', task.lapses_at) * 1000 as lapses_ms,
  date_part('epoch', clock.now - task.eligible_at) * 1000 as waited_ms,
  case when claim.is_known is null then
    (select parameters from sluice.task_inputs where task_id = task.id)
  end as parameters`);

/**
 * Of tasks that are known, Postgres says only whether: usually all, and then it names none. Who has
 * left the line since it was submitted, to be run or to be changed, is not what it was.
 */
const claimKnownSql = prepared(`
with claimed as (${claimSql}
  and found.attempt = 0 and found.run_at is null and found.queued_at = found.created_at
returning task.lease
)
select
  date_part('epoch', coalesce($7::timestamptz, now())) * 1000 as now_ms,
  case when count(*) < cardinality($1::uuid[]) then coalesce(array_agg(lease), '{}') end as leases
from claimed`);

interface Row {
  readonly lease: Lease;
  readonly task_type: string;
  readonly queue: string;
  readonly timeout_seconds: number;
  readonly attempt: number;
  readonly priority: number;
  readonly retry_count: number;
  readonly workflow_id: string | null;
  readonly trace_id: string | null;
  readonly cost: Cost | null;
  readonly lapses_ms: number;
  readonly waited_ms: number;
  /** Null: they are known, or their row is missing. */
  readonly parameters: JsonObject | null;
}

interface KnownAnswer {
  readonly now_ms: number;
  /** Null: all of them. */
  readonly leases: readonly Lease[] | null;
}

/** A statement more costs what it saves for so many. */
const worthApart = 50;

type KnownClaim = Claim & { readonly known: KnownTask };

/** The generation, how long an assigned one may wait for its start, and the instant. */
type Terms = readonly [generation: number, unstartedMs: number, now: Instant];

/**
 * Those that don't come back were refused: no longer queued, in somebody's hands, or all of them,
 * when this is not the generation any more.
 */
export async function claimTasks(
  db: Queryable,
  claims: readonly Claim[],
  ...terms: Terms
): Promise<ClaimedRow[]> {
  const known = claims.filter(isKnown);
  if (known.length < Math.min(claims.length, worthApart)) return claimUnknown(db, claims, terms);
  const claimed = await claimKnown(db, known, terms);
  if (claimed.length === claims.length) return claimed;
  // Unknown, refused, or no longer as it was known.
  const got = new Set(claimed.map(({ lease }) => lease));
  const rest = claims.filter(({ lease }) => !got.has(lease));
  try {
    return [...claimed, ...(await claimUnknown(db, rest, terms))];
  } catch (error) {
    const mayPass = error instanceof LockedError || error instanceof DatabaseAwayError;
    if (claimed.length === 0 || !mayPass) throw error;
    // What was claimed is claimed. What became of the rest is found out by the lap for lost entries.
    return claimed;
  }
}

function isKnown(claim: Claim): claim is KnownClaim {
  return claim.start && claim.known !== undefined && claim.known !== null;
}

async function claimKnown(
  db: Queryable,
  claims: readonly KnownClaim[],
  terms: Terms,
): Promise<ClaimedRow[]> {
  const [answer] = await db.query<KnownAnswer>(claimKnownSql, parametersOf(claims, terms));
  if (answer === undefined) throw new Error('a claim was not answered');
  const { now_ms: nowMs, leases } = answer;
  const got = leases === null ? null : new Set(leases);
  const claimed: ClaimedRow[] = [];
  for (const claim of claims) {
    if (got?.has(claim.lease) ?? true) claimed.push(firstAttempt(claim, claim.known, nowMs));
  }
  return claimed;
}

/** As it is when a claim finds what was submitted; it lapses at its timeout if it is started. */
export function firstAttempt(
  { taskId, workerId, lease }: Pick<Claim, 'taskId' | 'workerId' | 'lease'>,
  known: KnownTask,
  nowMs: number,
  lapsesAfterMs = known.timeoutSeconds * 1000,
): ClaimedRow {
  return {
    taskId,
    taskType: known.taskType,
    queue: known.queue,
    parameters: JSON.parse(known.parametersJson) as JsonObject,
    timeoutSeconds: known.timeoutSeconds,
    attempt: 1,
    lease,
    priority: known.priority,
    retryCount: 0,
    workflowId: null,
    traceId: known.traceId,
    workerId,
    lapsesAt: new Date(nowMs + lapsesAfterMs),
    waitedMs: nowMs - known.eligibleAtMs,
    cost: known.cost,
  };
}

async function claimUnknown(
  db: Queryable,
  claims: readonly Claim[],
  terms: Terms,
): Promise<ClaimedRow[]> {
  const rows = await db.query<Row>(claimTasksSql, parametersOf(claims, terms));
  const claimOf = new Map(claims.map((claim) => [claim.lease, claim]));
  return rows.map((row) => {
    const claim = claimOf.get(row.lease);
    if (claim === undefined) throw new Error('a claim was answered that was not made');
    return {
      // Ours, not those of the answer: they would be held besides for as long as it runs.
      taskId: claim.taskId,
      lease: claim.lease,
      workerId: claim.workerId,
      taskType: row.task_type,
      queue: row.queue,
      parameters: row.parameters ?? parametersIn(claim.known),
      timeoutSeconds: row.timeout_seconds,
      attempt: row.attempt,
      priority: priorityOf(row.priority),
      retryCount: row.retry_count,
      workflowId: row.workflow_id,
      traceId: row.trace_id,
      lapsesAt: new Date(row.lapses_ms),
      waitedMs: row.waited_ms,
      cost: costOf(row.cost),
    };
  });
}

function parametersIn(known: KnownTask | null | undefined): JsonObject | null {
  return known ? (JSON.parse(known.parametersJson) as JsonObject) : null;
}

function parametersOf(claims: readonly Claim[], terms: Terms): unknown[] {
  return [
    column(claims, (claim) => claim.taskId),
    column(claims, (claim) => claim.workerId),
    column(claims, (claim) => claim.start),
    column(claims, (claim) => claim.lease),
    ...terms,
    sparseColumn(claims, ({ known }) => (known ? true : null)),
  ];
}
