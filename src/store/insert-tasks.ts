import type { TaskId } from '../domain/ids.js';
import { rankOf } from '../domain/priority.js';
import type { WaitsFor } from '../domain/task-state.js';
import { neededColumns, type Needed } from './admission.js';
import { column, jsonColumn, listOrNull, sparseColumn } from './columns.js';
import { prepared, type Instant, type Queryable } from './database.js';
import { insertDueTasks, isDueAtOnce } from './insert-due-tasks.js';
import type { Created, NewTask } from './new-task.js';

/**
 * One insert for all. A column that nobody in the batch uses comes as a null array, of which unnest
 * makes nulls. Unnest keeps the order of the arrays, and so does the sequence: seq is insert order.
 *
 * All of it is let in or nothing. It is counted last, after the inputs, since everybody waits for
 * that row until this one commits. When there is no room, the count refuses: nothing was inserted.
 * Near a ceiling it is looked for room first ($25), so that a refusal costs little. Within a
 * transaction ($24 is false) the counting is left to the end of it.
 */
function insertSql(keys: { taken: string; isWinner: string; locks: string }): string {
  return prepared(`
with gate as (
  select case when $25::boolean then
    sluice.has_room($21::text[], $22::bigint[], $23::integer[], ${keys.locks})
  else
    true
  end as is_open
), ${keys.taken} inputs as (
  insert into sluice.task_inputs (task_id, parameters)
  select id, parameters
  from rows from (unnest($2::uuid[], $20::text[]), json_array_elements($3::json))
    as draft (id, key, parameters)
  where (select is_open from gate) and ${keys.isWinner}
  returning 1
), created as (
  insert into sluice.tasks (
    id, queue, task_type, capabilities, priority, status, waits_for, created_at, eligible_at,
    run_at, queued_at, dispatch_deadline_seconds, expires_at, timeout_seconds, max_retries,
    workflow_id, halts_workflow, idempotency_key, cost, user_id, tags, trace_id, owner
  )
  select
    id, queue, task_type, coalesce(capabilities::text[], '{}'), priority,
    case when waits_for is null then 'queued' else 'pending' end, waits_for,
    now, greatest(now, starts_at), case when waits_for = 'time' then coalesce(starts_at, now) else starts_at end,
    case when waits_for is null then now end,
    deadline_seconds,
    -- A member that waits for its turn can't be late: its deadline runs from its release.
    case
      when waits_for = 'workflow' and deadline_seconds is not null then 'infinity'
      else greatest(now, starts_at) + deadline_seconds * interval '1 second'
    end,
    timeout_seconds, max_retries, workflow_id, coalesce(halts_workflow, true), key,
    cost::json, user_id, coalesce(tags::text[], '{}'), trace_id, owner
  from
    unnest(
      $2::uuid[], $4::text[], $5::text[], $6::text[], $7::smallint[], $8::integer[],
      $9::smallint[], $10::boolean[], $11::timestamptz[], $12::float8[], $13::integer[],
      $14::text[], $15::boolean[], $16::text[], $17::text[], $18::text[], $19::text[], $20::text[],
      $26::text[]
    ) as draft (
      id, queue, task_type, capabilities, priority, timeout_seconds, max_retries,
      is_offered, run_at, delay_seconds, deadline_seconds, workflow_id, halts_workflow,
      cost, user_id, tags, trace_id, key, owner
    ),
    lateral (select coalesce($1::timestamptz, now()) as now) as clock,
    lateral (
      select coalesce(run_at, now + delay_seconds * interval '1 second') as starts_at
    ) as schedule,
    lateral (
      select case
        when workflow_id is not null then 'workflow'
        when starts_at > now or not is_offered then 'time'
      end as waits_for
    ) as waiting
  where (select is_open from gate) and ${keys.isWinner}
  returning
    id, seq, queue, waits_for,
    date_part('epoch', created_at) * 1000 as created_ms,
    date_part('epoch', eligible_at) * 1000 as eligible_ms
), counted as (
  select case when $24::boolean then
    sluice.count_admitted(array_agg(queue), $21::text[], $22::bigint[], $23::integer[])
  end
  from created
  where (select count(*) from inputs) > 0
)
select id, seq, waits_for, created_ms, eligible_ms from created cross join counted`);
}

/** Near a ceiling it locks first: nobody waits for anything but other submits. */
const insertPlainSql = insertSql({ taken: '', isWinner: 'true', locks: '$24::boolean' });

/**
 * Whoever inserts the key inserts the task. On conflict waits for a concurrent insert of the key
 * to commit, and takes an expired one over. In the order of the keys, so that two batches with the
 * same keys don't wait for each other. A batch's own ids tell winners from losers: by a hashed
 * subplan, since "or" keeps the planner from making a join of it, which would be a nested loop.
 * A key may be somebody's for long: nobody waits for one while others wait for the count.
 */
const insertKeyedSql = insertSql({
  taken: `taken as (
  insert into sluice.idempotency_keys as held (scope, key, task_id, fingerprint, expires_at)
  select distinct on (scope, key)
    scope, key, id, fingerprint, coalesce($1::timestamptz, now()) + interval '24 hours'
  from unnest($2::uuid[], $20::text[], $27::text[], $28::bytea[]) with ordinality
    as draft (id, key, scope, fingerprint, n)
  where key is not null and (select is_open from gate)
  order by scope, key, n
  on conflict (scope, key) do update
    set task_id = excluded.task_id, fingerprint = excluded.fingerprint,
      expires_at = excluded.expires_at
    where held.expires_at <= coalesce($1::timestamptz, now())
  returning task_id
),`,
  isWinner: '(key is null or id in (select task_id from taken))',
  locks: 'false',
});

interface CreatedRow {
  readonly id: TaskId;
  readonly seq: number;
  readonly waits_for: WaitsFor | null;
  readonly created_ms: number;
  readonly eligible_ms: number;
}

/** Without those whose key was taken; none of them when the ceilings leave no room for all. */
export async function insertTasks(
  db: Pick<Queryable, 'query'>,
  tasks: readonly NewTask[],
  needs: readonly Needed[],
  { counts, looks }: { readonly counts: boolean; readonly looks: boolean },
  now: Instant,
): Promise<Map<TaskId, Created>> {
  if (tasks.every(isDueAtOnce)) {
    return insertDueTasks(db, tasks, needs, { counts, looks }, now);
  }
  const keys = sparseColumn(tasks, (task) => task.idempotency?.key ?? null);
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
    column(tasks, (task) => task.isOffered),
    sparseColumn(tasks, (task) => task.runAt),
    sparseColumn(tasks, (task) => task.delaySeconds),
    sparseColumn(tasks, (task) => task.dispatchDeadlineSeconds),
    sparseColumn(tasks, (task) => task.workflowId),
    sparseColumn(tasks, (task) => (task.haltsWorkflow ? null : false)),
    sparseColumn(tasks, (task) => task.costJson),
    sparseColumn(tasks, (task) => task.userId),
    sparseColumn(tasks, (task) => listOrNull(task.tags)),
    sparseColumn(tasks, (task) => task.trace),
    keys,
    ...neededColumns(needs),
    counts,
    looks,
    sparseColumn(tasks, (task) => task.owner),
  ];
  const rows =
    keys === null
      ? await db.query<CreatedRow>(insertPlainSql, parameters)
      : await db.query<CreatedRow>(insertKeyedSql, [
          ...parameters,
          column(tasks, (task) => task.idempotency?.scope ?? null),
          column(tasks, (task) => task.idempotency?.fingerprint ?? null),
        ]);
  return new Map(rows.map((row) => [row.id, createdOf(row)]));
}

function createdOf(row: CreatedRow): Created {
  return {
    kind: 'created',
    taskId: row.id,
    status: row.waits_for === null ? 'queued' : 'pending',
    waitsFor: row.waits_for,
    seq: row.seq,
    createdAt: new Date(row.created_ms),
    eligibleAtMs: row.eligible_ms,
    isClaimed: false,
  };
}
