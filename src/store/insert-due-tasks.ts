import type { TaskId } from '../domain/ids.js';
import { oldestGrantNumber } from '../domain/lease.js';
import { rankOf } from '../domain/priority.js';
import { neededColumns, type Needed } from './admission.js';
import { column, jsonColumn, listOrNull, sparseColumn } from './columns.js';
import { prepared, type Instant, type Queryable } from './database.js';
import type { Created, NewClaim, NewTask } from './new-task.js';

/**
 * As `insertTasks`, for what is due now, belongs to no confined key and nothing else, which is most: it is in line at once, at one
 * instant. Its numbers follow one another unless somebody else inserted meanwhile, so that there is
 * nothing to answer for each.
 */
function insertSql(claim: {
  held: string;
  columns: string;
  status: string;
  values: string;
  arrays: string;
  names: string;
  isHeld: string;
}): string {
  return prepared(`
with gate as (
  select case when $18::boolean then
    sluice.has_room($14::text[], $15::bigint[], $16::integer[], $17::boolean)
  else
    true
  end as is_open
), ${claim.held} inputs as (
  insert into sluice.task_inputs (task_id, parameters)
  select id, parameters
  from rows from (unnest($2::uuid[]), json_array_elements($3::json)) as draft (id, parameters)
  where (select is_open from gate)
  returning 1
), created as (
  insert into sluice.tasks (
    id, queue, task_type, capabilities, priority, status, created_at, eligible_at, queued_at,
    timeout_seconds, max_retries, cost, user_id, tags, trace_id${claim.columns}
  )
  select
    id, queue, task_type, coalesce(capabilities::text[], '{}'), priority, ${claim.status}, now, now,
    now, timeout_seconds, max_retries, cost::json, user_id, coalesce(tags::text[], '{}'),
    trace_id${claim.values}
  from
    unnest(
      $2::uuid[], $4::text[], $5::text[], $6::text[], $7::smallint[], $8::integer[],
      $9::smallint[], $10::text[], $11::text[], $12::text[], $13::text[]${claim.arrays}
    ) as draft (
      id, queue, task_type, capabilities, priority, timeout_seconds, max_retries,
      cost, user_id, tags, trace_id${claim.names}
    ),
    lateral (select coalesce($1::timestamptz, now()) as now) as clock
  where (select is_open from gate)
  returning seq, queue
), counted as (
  select case when $17::boolean then
    sluice.count_admitted(array_agg(queue), $14::text[], $15::bigint[], $16::integer[])
  end
  from created
  where (select count(*) from inputs) > 0
)
select
  date_part('epoch', coalesce($1::timestamptz, now())) * 1000 as now_ms,
  min(seq) as first_seq,
  case when max(seq) - min(seq) >= count(*) then array_agg(seq) end as seqs,
  ${claim.isHeld} as is_held
from created cross join counted`);
}

const insertQueuedSql = insertSql({
  held: '',
  columns: '',
  status: `'queued'`,
  values: '',
  arrays: '',
  names: '',
  isHeld: 'false',
});

/**
 * Those that somebody has are claimed. None of them, if they were taken of an older generation, or if one is of
 * a queue whose settings have changed since: see `sluice.fenced_queues`.
 */
const insertClaimedSql = insertSql({
  held: `held as materialized (
  select case when not sluice.fenced_queues($19::bigint, $24::bigint) && $4::text[] then
    $20::uuid[]
  end as leases
),`,
  columns: ', lease, worker_id, attempt, assigned_at, started_at, lapses_at',
  status: `case when lease is null then 'queued' when start then 'executing' else 'assigned' end`,
  values: `, lease, case when lease is not null then worker_id end,
    case when lease is null then 0 else 1 end, case when lease is not null then now end,
    case when lease is not null and start then now end,
    case when lease is not null then
      now + case
        when start then timeout_seconds * interval '1 second'
        else $23::float8 * interval '1 millisecond'
      end
    end`,
  arrays: ', (select leases from held), $21::uuid[], $22::boolean[]',
  names: ', lease, worker_id, start',
  isHeld: '(select leases is not null from held)',
});

interface Row {
  readonly now_ms: number;
  /** Null: there was no room for all of them. */
  readonly first_seq: number | null;
  /** Null: one after the other from the first. */
  readonly seqs: readonly (number | string)[] | null;
  /** Those that were to be claimed are. */
  readonly is_held: boolean;
}

export function isDueAtOnce(task: NewTask): boolean {
  return (
    task.isOffered &&
    task.runAt === null &&
    task.delaySeconds === null &&
    task.dispatchDeadlineSeconds === null &&
    task.workflowId === null &&
    task.owner === null &&
    task.idempotency === null
  );
}

export async function insertDueTasks(
  db: Pick<Queryable, 'query'>,
  tasks: readonly NewTask[],
  needs: readonly Needed[],
  { counts, looks }: { readonly counts: boolean; readonly looks: boolean },
  now: Instant,
): Promise<Map<TaskId, Created>> {
  const parameters = [
    now,
    column(tasks, (task) => task.taskId),
    jsonColumn(tasks, (task) => task.parametersJson),
    column(tasks, (task) => task.queue),
    column(tasks, (task) => task.taskType),
    sparseColumn(tasks, (task) => listOrNull(task.capabilities)),
    column(tasks, (task) => rankOf(task.priority)),
    column(tasks, (task) => task.timeoutSeconds),
    column(tasks, (task) => task.maxRetries),
    sparseColumn(tasks, (task) => task.costJson),
    sparseColumn(tasks, (task) => task.userId),
    sparseColumn(tasks, (task) => listOrNull(task.tags)),
    sparseColumn(tasks, (task) => task.trace),
    ...neededColumns(needs),
    counts,
    looks,
  ];
  const claim = tasks.find((task) => task.claim !== null)?.claim ?? null;
  const [row] = await (claim === null
    ? db.query<Row>(insertQueuedSql, parameters)
    : db.query<Row>(insertClaimedSql, [...parameters, ...claimColumns(tasks, claim)]));
  return row === undefined ? new Map() : createdOf(tasks, row);
}

function claimColumns(tasks: readonly NewTask[], { generation, unstartedMs }: NewClaim): unknown[] {
  return [
    generation,
    column(tasks, ({ claim }) => claim?.lease ?? null),
    column(tasks, ({ claim }) => claim?.workerId ?? null),
    column(tasks, ({ claim }) => claim?.start ?? null),
    unstartedMs,
    oldestGrantNumber(tasks.flatMap(({ claim }) => claim?.lease ?? [])),
  ];
}

function createdOf(tasks: readonly NewTask[], row: Row): Map<TaskId, Created> {
  const created = new Map<TaskId, Created>();
  const { now_ms: nowMs, first_seq: firstSeq } = row;
  if (firstSeq === null) return created;
  // A sequence only ever goes up, and it was asked in the order of the array.
  const seqs = row.seqs?.map(Number).sort((a, b) => a - b);
  for (const [index, { taskId, claim }] of tasks.entries()) {
    created.set(taskId, {
      kind: 'created',
      taskId,
      status: 'queued',
      waitsFor: null,
      seq: seqs?.[index] ?? firstSeq + index,
      createdAt: new Date(nowMs),
      eligibleAtMs: nowMs,
      isClaimed: row.is_held && claim !== null,
    });
  }
  return created;
}
