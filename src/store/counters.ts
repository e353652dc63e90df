import { counterPositions } from '../domain/counters.js';
import { column } from './columns.js';
import type { Instant, Queryable } from './database.js';

/** The queue name of the rows that sum over all queues. A queue can't have it: names are not empty. */
export const allQueuesName = '';

/** Rows begin as the shortest step and are summed up to the next one as they age. */
export const counterSteps = [5, 60, 3_600] as const;
export type CounterStep = (typeof counterSteps)[number];
export const shortestStepMs = counterSteps[0] * 1000;

export interface CountedSlot {
  readonly queue: string;
  /** When the slot of the shortest step begins. */
  readonly atMs: number;
  readonly counts: Float64Array;
}

export interface CountingProcess {
  readonly id: string;
  /** Greater than that of every write before. */
  readonly sequence: number;
}

/**
 * Adds to the counts of all servers. A write with a sequence that was written before adds nothing, so that it can
 * be sent again when its answer was lost. Rows are sorted, so that two servers lock them in the same order.
 */
export async function addCounts(
  db: Queryable,
  process: CountingProcess,
  slots: readonly CountedSlot[],
  now: Instant,
): Promise<void> {
  await db.query(
    `with fresh as (
       insert into sluice.counting_processes as known (id, sequence, written_at)
       values ($1::uuid, $2::bigint, coalesce($6::timestamptz, now()))
       on conflict (id) do update set sequence = excluded.sequence, written_at = excluded.written_at
       where known.sequence < excluded.sequence
       returning id
     )
     insert into sluice.counters as known (step_seconds, at, queue, counts)
     select 5, slot.at, slot.queue, slot.counts::bigint[]
     from unnest($3::timestamptz[], $4::text[], $5::text[]) as slot (at, queue, counts), fresh
     order by slot.at, slot.queue collate "C"
     on conflict (step_seconds, at, queue)
       do update set counts = sluice.add_counts(known.counts, excluded.counts)`,
    [
      process.id,
      process.sequence,
      column(slots, ({ atMs }) => new Date(atMs)),
      column(slots, ({ queue }) => queue),
      column(slots, ({ counts }) => countsText(counts)),
      now,
    ],
  );
}

/** Zeros at the end are left out. */
function countsText(counts: Float64Array): string {
  let length = counts.length;
  while (length > 0 && counts[length - 1] === 0) length -= 1;
  return `{${counts.subarray(0, length).map(Math.round).join(',')}}`;
}

/** Arrays of Postgres begin at 1. */
const recentPositions = (['started', 'completed', 'failed', 'run_ms'] as const).map(
  (name) => counterPositions[name] + 1,
);

/** By queue: the sums that a person and an estimate look at most. */
export interface RecentSums {
  readonly started: number;
  readonly completed: number;
  readonly failed: number;
  readonly runMs: number;
}

/** Of all queues that something happened in since then; the sum over all is one of them. Index: counters_pkey. */
export async function findRecentCounts(
  db: Queryable,
  sinceMs: number,
): Promise<Map<string, RecentSums>> {
  const rows = await db.query<RecentSums & { queue: string }>(
    `select queue,
       coalesce(sum(counts[$2::integer]), 0)::float8 as started,
       coalesce(sum(counts[$3::integer]), 0)::float8 as completed,
       coalesce(sum(counts[$4::integer]), 0)::float8 as failed,
       coalesce(sum(counts[$5::integer]), 0)::float8 as "runMs"
     from sluice.counters
     where step_seconds = 5 and at >= $1::timestamptz
     group by queue`,
    [new Date(sinceMs), ...recentPositions],
  );
  return new Map(rows.map(({ queue, ...sums }) => [queue, sums]));
}

export interface CountedSpan {
  readonly atMs: number;
  readonly counts: readonly number[];
}

export interface CountedPieces {
  readonly pieces: readonly CountedSpan[];
  /** The last write of the process that asks which is among them; 0: none. */
  readonly sequence: number;
}

/**
 * What happened in a queue, in pieces of `stepSeconds` that begin at a multiple of it. Rows of all steps count: the
 * youngest are not summed up yet. A row of an hour counts where it begins. Index: counters_queue. The sequence comes
 * from the same snapshot: whoever adds what is not written yet knows what that is.
 */
export async function findCounts(
  db: Queryable,
  queue: string,
  { fromMs, toMs, stepSeconds }: { fromMs: number; toMs: number; stepSeconds: number },
  processId: string | null = null,
): Promise<CountedPieces> {
  const rows = await db.query<{ sequence: number; at_ms: number | null; counts: string[] }>(
    `select process.sequence, counted.at_ms, counted.counts
     from (
       select coalesce(
         (select sequence from sluice.counting_processes where id = $5::uuid), 0
       ) as sequence
     ) process
     left join (
       select extract(epoch from piece)::float8 * 1000 as at_ms,
         sluice.sum_counts(counts)::text[] as counts
       from sluice.counters, date_bin($4::float8 * interval '1 s', at, 'epoch'::timestamptz) as piece
       where queue = $1 and step_seconds in (5, 60, 3600)
         and at >= $2::timestamptz and at < $3::timestamptz
       group by piece
     ) counted on true
     order by counted.at_ms`,
    [queue, new Date(fromMs), new Date(toMs), stepSeconds, processId],
  );
  return {
    pieces: rows.flatMap(({ at_ms: atMs, counts }) =>
      atMs === null ? [] : [{ atMs, counts: counts.map(Number) }],
    ),
    sequence: rows[0]?.sequence ?? 0,
  };
}

export interface CountedRow {
  readonly atMs: number;
  readonly stepMs: number;
  readonly counts: readonly number[];
}

/** Rows of a queue as they are kept, with those that begin before that time and end after it. Index: counters_queue. */
export async function findCountRows(
  db: Queryable,
  queue: string,
  sinceMs: number,
): Promise<CountedRow[]> {
  const rows = await db.query<{ at_ms: number; step_ms: number; counts: string[] }>(
    `select extract(epoch from at)::float8 * 1000 as at_ms, step * 1000 as step_ms,
       counts::text[] as counts
     from unnest($3::integer[]) as step, lateral (
       select at, counts from sluice.counters
       where queue = $1 and step_seconds = step
         and at > $2::timestamptz - step * interval '1 s'
     ) counted`,
    [queue, new Date(sinceMs), counterSteps],
  );
  return rows.map(({ at_ms: atMs, step_ms: stepMs, counts }) => ({
    atMs,
    stepMs,
    counts: counts.map(Number),
  }));
}

export interface SumUp {
  readonly from: CounterStep;
  readonly to: CounterStep;
  readonly olderThanMs: number;
  readonly limit: number;
}

/**
 * Replaces rows of one step by those of the next, in one statement, so that nothing is counted twice or lost on the
 * way. Rows that another server works on are left to it. How many rows were replaced. Index: counters_pkey.
 */
export async function sumUpCounts(
  db: Queryable,
  { from, to, olderThanMs, limit }: SumUp,
  now: Instant,
): Promise<number> {
  const [row] = await db.query<{ replaced: number }>(
    `with old as materialized (
       select step_seconds, at, queue from sluice.counters
       where step_seconds = $1::integer
         and at < coalesce($5::timestamptz, now()) - $3::float8 * interval '1 ms'
       order by at limit $4::integer
       for update skip locked
     ), gone as (
       delete from sluice.counters known using old
       where known.step_seconds = old.step_seconds and known.at = old.at and known.queue = old.queue
       returning known.at, known.queue, known.counts
     ), sums as (
       insert into sluice.counters as known (step_seconds, at, queue, counts)
       select $2::integer, piece, queue, sluice.sum_counts(counts)
       from gone, date_bin($2::float8 * interval '1 s', at, 'epoch'::timestamptz) as piece
       group by piece, queue order by piece, queue
       on conflict (step_seconds, at, queue)
         do update set counts = sluice.add_counts(known.counts, excluded.counts)
     )
     select count(*)::integer as replaced from gone`,
    [from, to, olderThanMs, limit, now],
  );
  return row?.replaced ?? 0;
}

/**
 * The age at which rows of a step have to be replaced so that no more than `maxRows` are left, at most `keptMs`.
 * It walks an index, so it is asked seldom. Index: counters_pkey.
 */
export async function findCountsAge(
  db: Queryable,
  step: CounterStep,
  maxRows: number,
  keptMs: number,
  now: Instant,
): Promise<number> {
  const [row] = await db.query<{ age_ms: number }>(
    `select extract(epoch from coalesce($3::timestamptz, now()) - at)::float8 * 1000 as age_ms
     from sluice.counters where step_seconds = $1::integer
     order by at desc offset $2::integer limit 1`,
    [step, maxRows, now],
  );
  return Math.min(row?.age_ms ?? keptMs, keptMs);
}

/** Rows of the longest step, and processes that have not counted for as long. How many rows went. */
export async function purgeCounts(
  db: Queryable,
  olderThanMs: number,
  limit: number,
  now: Instant,
): Promise<number> {
  const [row] = await db.query<{ purged: number }>(
    `with processes as (
       delete from sluice.counting_processes
       where written_at < coalesce($3::timestamptz, now()) - $1::float8 * interval '1 ms'
     ), gone as (
       delete from sluice.counters where (step_seconds, at, queue) in (
         select step_seconds, at, queue from sluice.counters
         where step_seconds = 3600
           and at < coalesce($3::timestamptz, now()) - $1::float8 * interval '1 ms'
         order by at limit $2::integer
       ) returning at
     )
     select count(*)::integer as purged from gone`,
    [olderThanMs, limit, now],
  );
  return row?.purged ?? 0;
}
