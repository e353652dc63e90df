import type { Lease, TaskId, WorkerId } from '../domain/ids.js';
import { oldestGrantNumber } from '../domain/lease.js';
import type { JsonObject } from '../domain/json.js';
import { priorityOf, type Priority } from '../domain/priority.js';
import type { Cost } from '../domain/queue-settings.js';
import { bounds } from '../protocol/bounds.js';
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
  readonly trace: string | null;
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
  readonly trace: string | null;
  readonly workerId: WorkerId;
  readonly lapsesAt: Date;
  /** Since it was eligible. */
  readonly waitedMs: number;
  /** Since it was eligible; at a later attempt since it came back to the line. */
  readonly inLineMs: number;
  readonly cost: Cost;
  /** Of its parameters, as JSON. */
  readonly bytes: number;
}

/**
 * The fence is asked once, in a subquery which the planner makes a gate before everything else: no row is
 * looked at before its answer. It says whether this is the generation, and of which queues nothing may be
 * claimed, since the ready queue granted it under older settings. There are none of them but for a moment
 * after a change.
 */
const fenceSql = (oldestGrant: string): string => `
with fence as materialized (
  select sluice.fenced_queues($5::bigint, ${oldestGrant}::bigint) as queues
)`;

const setSql = `
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
  end`;

/**
 * Compare-and-set. Locked rows are skipped, not waited for: whoever holds one is about to change
 * it. The status is that of the locked row; as a condition on the table, it would invite the planner
 * to read all that is queued. The parameters come from the one partition that the id names.
 *
 * Claims stop with the task that takes the answer past $9 bytes: the rest stays queued. The bytes of those
 * whose parameters are known here come with the claim.
 */
const claimTasksSql = prepared(`${fenceSql('$10')}
update sluice.tasks task
${setSql}
from
  (select coalesce($7::timestamptz, now()) as now) as clock,
  (
    select found.*, sum(bytes) over (
      order by n rows between unbounded preceding and 1 preceding
    ) as bytes_before
    from (
      select
        claim.worker_id, claim.start, claim.lease, claim.n, row.place, input.parameters,
        coalesce(claim.bytes, octet_length(input.parameters::text), 0) as bytes
      from
        unnest($1::uuid[], $2::uuid[], $3::boolean[], $4::uuid[], $8::integer[])
          with ordinality as claim (id, worker_id, start, lease, bytes, n)
        cross join lateral (
          select ctid as place, status, queue
          from sluice.tasks where id = claim.id offset 0
          for no key update skip locked
        ) as row
        left join lateral (
          select parameters from sluice.task_inputs where task_id = claim.id and claim.bytes is null
        ) as input on true
      where
        (select queues is not null from fence) and row.status = 'queued'
        and row.queue <> all ((select queues from fence)::text[])
    ) as found
  ) as claim
where task.ctid = claim.place and coalesce(claim.bytes_before, 0) < $9::bigint
returning
  task.lease, task.task_type, task.queue, task.timeout_seconds, task.attempt,
  task.priority, task.retry_count, task.workflow_id, task.trace_id, task.cost,
  date_part('epoch', task.lapses_at) * 1000 as lapses_ms,
  date_part('epoch', clock.now - task.eligible_at) * 1000 as waited_ms,
  date_part('epoch', clock.now - case
    when task.attempt = 1 then task.eligible_at else task.queued_at
  end) * 1000 as in_line_ms,
  claim.bytes, claim.parameters`);

/**
 * Of tasks that are known, Postgres says only whether: usually all, and then it names none. Who has
 * left the line since it was submitted, to be run or to be changed, is not what it was.
 */
const claimKnownSql = prepared(`${fenceSql('$8')},
claimed as (
update sluice.tasks task
${setSql}
from
  (select coalesce($7::timestamptz, now()) as now) as clock,
  unnest($1::uuid[], $2::uuid[], $3::boolean[], $4::uuid[]) as claim (id, worker_id, start, lease),
  lateral (
    select ctid as place, status, attempt, created_at, queued_at, run_at
    from sluice.tasks where id = claim.id offset 0
    for no key update skip locked
  ) as found
where
  (select queues is not null from fence)
  and task.ctid = found.place and found.status = 'queued'
  and task.queue <> all ((select queues from fence)::text[])
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
  readonly in_line_ms: number;
  readonly bytes: number;
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

/** The generation, how long an assigned one may wait for its start, the instant, and the bytes of all. */
type Terms = readonly [
  generation: number,
  unstartedMs: number,
  now: Instant,
  /** It ends with the task that takes it past them. */
  mostBytes?: number,
];

/**
 * Those that don't come back were refused: no longer queued, in somebody's hands, of a queue whose settings
 * have changed since they were taken, or all of them, when this is not the generation any more; or they came
 * after those that take up `mostBytes`.
 */
export async function claimTasks(
  db: Queryable,
  claims: readonly Claim[],
  ...terms: Terms
): Promise<ClaimedRow[]> {
  const known = claims.filter(isKnown);
  const [generation, unstartedMs, now, mostBytes = bounds.answerBytes] = terms;
  const same = [generation, unstartedMs, now] as const;
  if (known.length < Math.min(claims.length, worthApart)) {
    return claimUnknown(db, claims, [...same, mostBytes]);
  }
  const claimed = await claimKnown(db, upTo(mostBytes, known), same);
  const leftBytes = mostBytes - claimed.reduce((sum, { bytes }) => sum + bytes, 0);
  if (claimed.length === claims.length || leftBytes <= 0) return claimed;
  // Unknown, refused, or no longer as it was known.
  const got = new Set(claimed.map(({ lease }) => lease));
  const rest = claims.filter(({ lease }) => !got.has(lease));
  try {
    return [...claimed, ...(await claimUnknown(db, rest, [...same, leftBytes]))];
  } catch (error) {
    const mayPass = error instanceof LockedError || error instanceof DatabaseAwayError;
    if (claimed.length === 0 || !mayPass) throw error;
    // What was claimed is claimed. What became of the rest is found out by the lap for lost entries.
    return claimed;
  }
}

/** With the one that takes them past so many bytes. */
function upTo(mostBytes: number, claims: readonly KnownClaim[]): readonly KnownClaim[] {
  let bytes = 0;
  const end = claims.findIndex(({ known }) => {
    const isPast = bytes >= mostBytes;
    bytes += bytesOf(known);
    return isPast;
  });
  return end === -1 ? claims : claims.slice(0, end);
}

function bytesOf({ parametersJson }: KnownTask): number {
  return Buffer.byteLength(parametersJson);
}

function isKnown(claim: Claim): claim is KnownClaim {
  return claim.start && claim.known !== undefined && claim.known !== null;
}

async function claimKnown(
  db: Queryable,
  claims: readonly KnownClaim[],
  terms: readonly [generation: number, unstartedMs: number, now: Instant],
): Promise<ClaimedRow[]> {
  const [answer] = await db.query<KnownAnswer>(claimKnownSql, [
    ...columnsOf(claims),
    ...terms,
    oldestGrantOf(claims),
  ]);
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
    trace: known.trace,
    workerId,
    lapsesAt: new Date(nowMs + lapsesAfterMs),
    waitedMs: nowMs - known.eligibleAtMs,
    inLineMs: nowMs - known.eligibleAtMs,
    cost: known.cost,
    bytes: bytesOf(known),
  };
}

async function claimUnknown(
  db: Queryable,
  claims: readonly Claim[],
  [generation, unstartedMs, now, mostBytes]: Required<Terms>,
): Promise<ClaimedRow[]> {
  const rows = await db.query<Row>(claimTasksSql, [
    ...columnsOf(claims),
    ...[generation, unstartedMs, now],
    sparseColumn(claims, ({ known }) => (known ? bytesOf(known) : null)),
    mostBytes,
    oldestGrantOf(claims),
  ]);
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
      trace: row.trace_id,
      lapsesAt: new Date(row.lapses_ms),
      waitedMs: row.waited_ms,
      inLineMs: row.in_line_ms,
      cost: costOf(row.cost),
      bytes: row.bytes,
    };
  });
}

function parametersIn(known: KnownTask | null | undefined): JsonObject | null {
  return known ? (JSON.parse(known.parametersJson) as JsonObject) : null;
}

function oldestGrantOf(claims: readonly Claim[]): number {
  return oldestGrantNumber(claims.map(({ lease }) => lease));
}

function columnsOf(claims: readonly Claim[]): unknown[] {
  return [
    column(claims, (claim) => claim.taskId),
    column(claims, (claim) => claim.workerId),
    column(claims, (claim) => claim.start),
    column(claims, (claim) => claim.lease),
  ];
}
