import { likePatterns, type Confinement } from '../domain/confinement.js';
import type { TaskId } from '../domain/ids.js';
import type { DeadLetterPattern } from '../protocol/dead-letters-api.js';
import type { Queryable } from './database.js';
import { errorHeadLength, readErrorHead } from './error-head.js';

const maxShown = 200;
const maxQueuesShown = 10;
/** Of the trend, the present one included. */
const hoursShown = 24;
const hourMs = 3_600_000;

interface PatternRow {
  readonly id: string;
  readonly task_type: string;
  readonly code: string;
  readonly message: string | null;
  readonly count: number;
  readonly retriable: number;
  readonly first_seen: Date;
  readonly last_seen: Date;
  readonly queues: readonly { queue: string; count: number }[];
  readonly queue_count: number;
  /** Pairs of an hour, counted from the first one shown, and how many came in it. */
  readonly hours: readonly (readonly [number, number])[] | null;
  readonly example_id: TaskId;
  readonly example_error: string | null;
}

const isReached = `($1::text is null or owner = $1) and ($2::text[] is null or queue like any($2))`;

/**
 * From the counts alone, so that the number of dead letters does not matter. A confined key gets what it reaches, with
 * the time since when that is there; anybody else the time since when the pattern is known.
 */
const patternsStatement = `
with counted as (
  select pattern, sum(count)::float8 as count, sum(retriable)::float8 as retriable,
    min(first_seen) as first_seen, max(last_seen) as last_seen,
    count(distinct queue)::integer as queue_count
  from sluice.dead_letter_counts where count > 0 and ${isReached}
  group by pattern order by count desc, pattern limit ${maxShown}
)
select known.id, known.task_type, known.code, known.message, counted.count, counted.retriable,
  case when $5::boolean then counted.first_seen else known.first_seen end as first_seen,
  case when $5::boolean then counted.last_seen else known.last_seen end as last_seen,
  counted.queue_count, queues.list as queues, trend.list as hours,
  example.task_id as example_id, left(task.error::text, ${errorHeadLength}) as example_error
from counted
join sluice.dead_letter_patterns known on known.id = counted.pattern
cross join lateral (
  select json_agg(top) as list from (
    select queue, sum(count)::float8 as count from sluice.dead_letter_counts
    where pattern = counted.pattern and ${isReached}
    group by queue order by count desc, queue limit ${maxQueuesShown}
  ) top
) queues
cross join lateral (
  select json_agg(json_build_array(extract(epoch from at - $3::timestamptz) / 3600, count)) as list
  from (
    select at, sum(count)::float8 as count from sluice.dead_letter_hours
    where pattern = counted.pattern and at >= $3::timestamptz and at <= $4::timestamptz
      and case when $5::boolean then queue <> '' and ${isReached} else queue = '' end
    group by at
  ) hour
) trend
cross join lateral (
  select queue, owner from sluice.dead_letter_counts
  where pattern = counted.pattern and count > 0 and ${isReached}
  order by last_seen desc limit 1
) newest
cross join lateral (
  select task_id from sluice.dead_letters
  where pattern = counted.pattern and queue = newest.queue and owner = newest.owner
  order by task_id desc limit 1
) example
left join sluice.tasks task on task.id = example.task_id
order by counted.count desc, counted.pattern`;

/** The most frequent first. */
export async function findDeadLetterPatterns(
  db: Queryable,
  within: Confinement,
  nowMs: number,
): Promise<DeadLetterPattern[]> {
  const lastHourMs = Math.floor(nowMs / hourMs) * hourMs;
  const patterns = likePatterns(within);
  const rows = await db.query<PatternRow>(patternsStatement, [
    within.owner,
    patterns,
    new Date(lastHourMs - (hoursShown - 1) * hourMs),
    new Date(lastHourMs),
    within.owner !== null || patterns !== null,
  ]);
  return rows.map(toPattern);
}

function toPattern(row: PatternRow): DeadLetterPattern {
  const hourly = Array.from({ length: hoursShown }, () => 0);
  for (const [hour, count] of row.hours ?? []) hourly[hour] = count;
  return {
    id: row.id,
    taskType: row.task_type,
    code: JSON.parse(`"${row.code}"`) as string,
    message: row.message,
    count: row.count,
    queues: row.queues,
    queueCount: row.queue_count,
    hourly,
    firstSeen: row.first_seen,
    lastSeen: row.last_seen,
    retriableShare: row.retriable / row.count,
    example: { taskId: row.example_id, message: readErrorHead(row.example_error).message },
  };
}

/**
 * How many patterns were first seen then or later, for an alert. A dead letter is classified within seconds, and counts
 * from when it ended, so `since` should lie a minute back or more.
 */
export async function countNewPatterns(db: Queryable, since: Date): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    `select count(*)::integer as count from sluice.dead_letter_patterns
     where first_seen >= $1::timestamptz`,
    [since],
  );
  return row?.count ?? 0;
}
