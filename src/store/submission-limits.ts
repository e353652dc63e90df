import {
  slotMsPerSecond,
  slotsInWindow,
  type SubmissionLimit,
  type SubmissionSlot,
} from '../domain/submission-limit.js';
import { column } from './columns.js';
import type { Instant, Queryable } from './database.js';

/** How many tasks somebody submits at once. */
export interface SubmissionWant {
  readonly subject: string;
  readonly tasks: number;
}

export interface SubmissionGrant {
  readonly subject: string;
  /** So many of them pass. They count. */
  readonly granted: number;
  /** By the database's clock. */
  readonly atMs: number;
  /** What counts against the limits, when not all of them pass. */
  readonly slots: readonly SubmissionSlot[] | null;
}

interface GrantRow {
  readonly subject: string;
  readonly granted: number;
  readonly at_ms: number;
  readonly slots: { per_seconds: number; slot: number; tasks: number }[] | null;
}

/**
 * Counts what every limit has room for, and that alone. All that is counted for a subject is in its
 * row, and the row is locked when the subquery reads it: of two servers the second sees what the
 * first let through. Sorted, so that they wait for each other in one direction.
 *
 * A statement that waited for the row has an older now than what it finds: it counts as if it had
 * come at that time. What lies further ahead than a window was written by a clock that was wrong.
 */
const spendSql = `
with clock as (
  select now, floor(date_part('epoch', now) * 1000)::bigint as ms
  from (select coalesce($5::timestamptz, now()) as now) as given
), limits as (
  select per_seconds, rate, (select ms from clock) / (per_seconds * ${slotMsPerSecond}) as slot
  from unnest($3::integer[], $4::integer[]) as given (per_seconds, rate)
), most as (
  select min(rate) as tasks, max(per_seconds) as seconds from limits
)
insert into sluice.submissions as held (subject, slots, wanted, granted, purge_at)
select
  want.subject,
  array(
    select row(per_seconds, slot, least(want.tasks, most.tasks))::sluice.submission_slot
    from limits
  ),
  want.tasks, least(want.tasks, most.tasks),
  date_trunc('hour', clock.now + 2 * most.seconds * interval '1 second') + interval '1 hour'
from clock cross join most cross join unnest($1::text[], $2::integer[]) as want (subject, tasks)
order by want.subject collate "C"
on conflict (subject) do update set
  wanted = excluded.wanted,
  purge_at = greatest(held.purge_at, excluded.purge_at),
  (slots, granted) = (
    with latest as (
      select per_seconds, rate, greatest(limits.slot, (
        select max(held_slot.slot) from unnest(held.slots) as held_slot
        where held_slot.per_seconds = limits.per_seconds
          and held_slot.slot <= limits.slot + ${slotsInWindow}
      )) as slot
      from limits
    ), counted as (
      select per_seconds, held_slot.slot, held_slot.tasks
      from latest join unnest(held.slots) as held_slot using (per_seconds)
      where held_slot.slot between latest.slot - ${slotsInWindow} and latest.slot
    ), granted as (
      select greatest(0, least(excluded.wanted, min(rate - (
        select coalesce(sum(counted.tasks), 0) from counted
        where counted.per_seconds = latest.per_seconds
      )))) as tasks
      from latest
    ), spent as (
      select per_seconds, slot, tasks from counted
      union all
      select per_seconds, slot, granted.tasks from latest cross join granted
    )
    select
      array(
        select row(per_seconds, slot, sum(tasks))::sluice.submission_slot
        from spent group by per_seconds, slot having sum(tasks) > 0
        order by per_seconds, slot
      ),
      granted.tasks
    from granted
  )
returning
  subject, granted, (select ms from clock) as at_ms,
  case when granted < wanted then to_json(slots) end as slots`;

/** Of subjects that come once each, all with the same limits. */
export async function spendSubmissions(
  db: Queryable,
  limits: readonly SubmissionLimit[],
  wants: readonly SubmissionWant[],
  now: Instant,
): Promise<SubmissionGrant[]> {
  const rows = await db.query<GrantRow>(spendSql, [
    column(wants, (want) => want.subject),
    column(wants, (want) => want.tasks),
    column(limits, (limit) => limit.perSeconds),
    column(limits, (limit) => limit.rate),
    now,
  ]);
  return rows.map((row) => ({
    subject: row.subject,
    granted: row.granted,
    atMs: row.at_ms,
    slots: row.slots?.map(slotOf) ?? null,
  }));
}

function slotOf(row: { per_seconds: number; slot: number; tasks: number }): SubmissionSlot {
  return { perSeconds: row.per_seconds, slot: row.slot, tasks: row.tasks };
}

/** What was granted, and no task came of it. */
export interface SubmissionReturn extends SubmissionWant {
  readonly atMs: number;
}

/**
 * From the slot of the instant that it was granted at. One that was counted later than that, since
 * it had to wait, may find nothing there: what is taken from an earlier slot lets nobody over a limit.
 */
export async function returnSubmissions(
  db: Queryable,
  returns: readonly SubmissionReturn[],
): Promise<void> {
  await db.query(
    `update sluice.submissions as held
     set slots = array(
       select row(per_seconds, slot, greatest(0, held_slot.tasks - coalesce((
         select sum(one.tasks) from unnest(returned.tasks, returned.at_ms) as one (tasks, at_ms)
         where one.at_ms / (per_seconds * ${slotMsPerSecond}) = slot
       ), 0)))::sluice.submission_slot
       from unnest(held.slots) as held_slot
     )
     from (
       select subject, array_agg(tasks) as tasks, array_agg(at_ms) as at_ms
       from unnest($1::text[], $2::integer[], $3::bigint[]) as given (subject, tasks, at_ms)
       group by subject order by subject collate "C"
     ) as returned
     where held.subject = returned.subject`,
    [
      column(returns, (one) => one.subject),
      column(returns, (one) => one.tasks),
      column(returns, (one) => one.atMs),
    ],
  );
}

/** How many went: those who submitted nothing for so long that nothing of it counts. */
export async function purgeSubmissions(
  db: Queryable,
  limit: number,
  now: Instant,
): Promise<number> {
  const rows = await db.query(
    `delete from sluice.submissions
     where ctid = any(array(
       select ctid from sluice.submissions
       where purge_at <= coalesce($2::timestamptz, now())
       order by purge_at limit $1 for update skip locked
     ))
     returning subject`,
    [limit, now],
  );
  return rows.length;
}
