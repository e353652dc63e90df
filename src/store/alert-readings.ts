import type { LabelledNumber } from '../domain/alerts/snapshot.js';
import { countOf, type CounterName } from '../domain/counters.js';
import { priorityOf, type Priority } from '../domain/priority.js';
import { storableText } from '../domain/storable-text.js';
import { allQueuesName, findCountRows, shortestStepMs, type CountedRow } from './counters.js';
import type { Instant, Queryable } from './database.js';

const hourMs = 3_600_000;

/** How often each thing happened over all queues and servers, in the time before now. */
export interface RecentHistory {
  since(ms: number): (name: CounterName) => number;
}

/** A process writes a slot as soon as it is over. */
const writtenAfterMs = 1_000;

/**
 * One read for all lengths of time up to an hour: about 150 rows. The time ends with the last slot that all servers
 * have written, and a row that begins before the time counts by the share of it that is within: else a steady flow
 * would look slower in a short time than in a long one, by up to a minute's row.
 */
export async function readHistory(db: Queryable, nowMs: number): Promise<RecentHistory> {
  const overMs = nowMs - writtenAfterMs;
  const untilMs = overMs - (overMs % shortestStepMs);
  const rows = await findCountRows(db, allQueuesName, untilMs - hourMs);
  return {
    since: (ms) => (name) => {
      const counted = rows.map((row) => countOf(row.counts, name) * shareSince(row, untilMs - ms));
      return Math.round(counted.reduce((sum, count) => sum + count, 0));
    },
  };
}

function shareSince({ atMs, stepMs }: CountedRow, sinceMs: number): number {
  return Math.min(1, Math.max(0, (atMs + stepMs - sinceMs) / stepMs));
}

/** Lanes and priorities that are looked at, each with one probe of the index. */
const maxWindows = 10_000;

/** Index: tasks_line, the first entry of each lane and priority, however long its line is. */
const oldestSql = `
with recursive step as (
  select ''::text collate "C" as queue, ''::text collate "C" as task_type,
    '{}'::text[] collate "C" as capabilities, (-1)::smallint as priority,
    null::timestamptz as eligible_at, 0 as n
  union all
  select next.*, step.n + 1
  from step, lateral (
    select queue, task_type, capabilities, priority, eligible_at
    from sluice.tasks
    where status = 'queued' and (queue, task_type, capabilities, priority)
      > (step.queue, step.task_type, step.capabilities, step.priority)
    order by queue, task_type, capabilities, priority, eligible_at
    limit 1
  ) as next
  where step.n < ${maxWindows}
)
select priority, extract(epoch from coalesce($1::timestamptz, now()) - min(eligible_at))::float8 as seconds
from step where n > 0 group by priority`;

/** For how long the oldest task in line has waited, by the priority that it was submitted with; 0: none waits. */
export async function readOldest(db: Queryable, now: Instant): Promise<Record<Priority, number>> {
  const rows = await db.query<{ priority: number; seconds: number }>(oldestSql, [now]);
  const oldest: Record<Priority, number> = { high: 0, medium: 0, low: 0 };
  for (const { priority, seconds } of rows) oldest[priorityOf(priority)] = Math.max(0, seconds);
  return oldest;
}

export interface WorkerReadings {
  readonly activeWorkers: number;
  readonly livingWorkers: number;
  readonly idleWorkers: number;
  readonly suspendedWorkers: number;
  readonly lostWorkers: number;
  readonly capacity: number;
  readonly usedCapacity: number;
}

/** Dead workers are kept for a day: the table is small. */
export async function readWorkers(db: Queryable, now: Instant): Promise<WorkerReadings> {
  const [row] = await db.query<Record<keyof WorkerReadings, number>>(
    `select
       count(*) filter (where status = 'active') as "activeWorkers",
       count(*) filter (where status <> 'dead') as "livingWorkers",
       count(*) filter (where status = 'active' and current_load = 0 and not is_suspended)
         as "idleWorkers",
       count(*) filter (where status <> 'dead' and is_suspended) as "suspendedWorkers",
       count(*) filter (where lost_at > instant - interval '5 minutes') as "lostWorkers",
       coalesce(sum(capacity) filter (where status <> 'dead'), 0) as capacity,
       coalesce(sum(current_load) filter (where status <> 'dead'), 0) as "usedCapacity"
     from coalesce($1::timestamptz, now()) as instant, sluice.workers,
       lateral (select coalesce(benched_until > instant, false) as is_suspended) standing`,
    [now],
  );
  if (row === undefined) throw new Error('an aggregate without groups answered no row');
  return row;
}

const maxReasons = 50;
const maxReasonLength = 200;

export interface DeadLetterReadings {
  readonly replayableDeadLetters: number;
  readonly deadLetterReasons: readonly LabelledNumber[];
}

/** From the counts by pattern: no dead letter is looked at. */
export async function readDeadLetters(db: Queryable): Promise<DeadLetterReadings> {
  const rows = await db.query<{ code: string; count: number; replayable: number }>(
    `select pattern.code, sum(counted.count)::integer as count,
       sum(sum(counted.retriable)) over ()::integer as replayable
     from sluice.dead_letter_counts counted
     join sluice.dead_letter_patterns pattern on pattern.id = counted.pattern
     where counted.count > 0
     group by pattern.code order by count desc, pattern.code limit ${maxReasons}`,
  );
  return {
    replayableDeadLetters: rows[0]?.replayable ?? 0,
    deadLetterReasons: rows.map(({ code, count }) => ({
      label: storableText(code, maxReasonLength),
      value: count,
    })),
  };
}

/** How late the task is whose time passed first and that did not come in line; 0: none. Index: tasks_timed. */
export async function readScheduledLateness(db: Queryable, now: Instant): Promise<number> {
  const [row] = await db.query<{ seconds: number | null }>(
    `select extract(epoch from coalesce($1::timestamptz, now()) - min(run_at))::float8 as seconds
     from sluice.tasks where waits_for = 'time'`,
    [now],
  );
  return Math.max(0, row?.seconds ?? 0);
}
