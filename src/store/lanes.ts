import type { Lane } from '../domain/lane.js';
import { arrayLiteral, column } from './columns.js';
import type { Database, Instant, Queryable } from './database.js';

export interface EnteringLane extends Lane {
  /** A lane that is not entered again is kept for this long at least. */
  readonly keptForMs: number;
}

/**
 * Rows of lanes are locked before counts of queues, and both in order: two servers that enter the same lanes wait for each
 * other in one direction. Index: the primary key.
 */
const enterSql = `
with entering as materialized (
  select
    n, queue collate "C" as queue, task_type collate "C" as task_type,
    capabilities::text[] collate "C" as capabilities,
    coalesce($5::timestamptz, now()) + kept_for_ms * interval '1 ms' as until
  from unnest($1::text[], $2::text[], $3::text[], $4::float8[]) with ordinality
    as lane (queue, task_type, capabilities, kept_for_ms, n)
), held as materialized (
  select entering.n, lane.queue, lane.task_type, lane.capabilities, entering.until
  from entering join sluice.lanes lane using (queue, task_type, capabilities)
  order by queue, task_type, capabilities
  for update of lane
), kept as (
  update sluice.lanes lane set kept_until = greatest(lane.kept_until, held.until)
  from held
  where (lane.queue, lane.task_type, lane.capabilities)
    = (held.queue, held.task_type, held.capabilities)
)
select n::integer as n, case
  when is_held then true
  else sluice.enter_lane(queue, task_type, capabilities, until)
end as is_in
from (
  select entering.*, exists (select from held where held.n = entering.n) as is_held
  from entering, (select count(*) from held) as locked
  order by queue, task_type, capabilities
  offset 0
) as lane`;

/** For each, in order, whether its queue has it now; false: the queue has as many as it may have. */
export async function enterLanes(
  db: Queryable,
  lanes: readonly EnteringLane[],
  now: Instant,
): Promise<boolean[]> {
  const rows = await db.query<{ n: number; is_in: boolean }>(enterSql, [
    column(lanes, ({ queue }) => queue),
    column(lanes, ({ taskType }) => taskType),
    column(lanes, ({ capabilities }) => arrayLiteral(capabilities)),
    column(lanes, ({ keptForMs }) => keptForMs),
    now,
  ]);
  const isIn = new Map(rows.map((row) => [row.n, row.is_in]));
  return lanes.map((_, index) => isIn.get(index + 1) ?? false);
}

/** Index: lanes_kept. Whoever is at one of them keeps it for this time. */
const dueSql = `
select distinct queue from (
  select queue from sluice.lanes
  where kept_until <= coalesce($1::timestamptz, now())
    and ($3::text[] is null or queue = any($3::text[]))
  order by kept_until limit $2
) as due
order by queue`;

const lockCountsSql = `
select queue from sluice.lane_counts where queue = any($1::text[]) order by queue for update`;

/** What waits in a lane keeps it. Index: tasks_line. */
const purgeSql = `
with due as materialized (
  select lane.queue, lane.task_type, lane.capabilities, exists (
    select from sluice.tasks task
    where task.status = 'queued' and task.queue = lane.queue
      and task.task_type = lane.task_type and task.capabilities = lane.capabilities
  ) as holds
  from sluice.lanes lane
  where lane.kept_until <= coalesce($1::timestamptz, now()) and lane.queue = any($2::text[])
  order by lane.kept_until limit $3
  for update skip locked
), kept as (
  update sluice.lanes lane
  set kept_until = coalesce($1::timestamptz, now()) + $4::float8 * interval '1 ms'
  from due
  where due.holds and (lane.queue, lane.task_type, lane.capabilities)
    = (due.queue, due.task_type, due.capabilities)
), gone as (
  delete from sluice.lanes lane using due
  where not due.holds and (lane.queue, lane.task_type, lane.capabilities)
    = (due.queue, due.task_type, due.capabilities)
  returning lane.queue
), counted as (
  update sluice.lane_counts c set lanes = c.lanes - gone.n
  from (select queue, count(*)::integer as n from gone group by queue) as gone
  where c.queue = gone.queue
)
select (select count(*) from due)::integer as seen, (select count(*) from gone)::integer as purged`;

export interface Purge {
  /** So many lanes are looked at. */
  readonly limit: number;
  /** One that holds something is kept for this long. */
  readonly keptForMs: number;
  /** Absent: of all queues. */
  readonly queues?: readonly string[];
}

export interface Purged {
  /** As many as the limit: there may be more. */
  readonly seen: number;
  readonly purged: number;
}

const none: Purged = { seen: 0, purged: 0 };

/**
 * Forgets lanes that were not entered for a while and hold nothing, so many at once. The counts are locked
 * first, as whoever enters a lane locks them before it inserts one.
 */
export async function purgeLanes(
  db: Database,
  { limit, keptForMs, queues: of }: Purge,
  now: Instant,
): Promise<Purged> {
  return db.transaction(async (tx) => {
    const due = await tx.query<{ queue: string }>(dueSql, [now, limit, of ?? null]);
    if (due.length === 0) return none;
    const queues = due.map(({ queue }) => queue);
    await tx.query(lockCountsSql, [queues]);
    const [row] = await tx.query<Purged>(purgeSql, [now, queues, limit, keptForMs]);
    await tx.query('delete from sluice.lane_counts where queue = any($1::text[]) and lanes = 0', [
      queues,
    ]);
    return row ?? none;
  });
}
