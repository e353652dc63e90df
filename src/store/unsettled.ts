import { column } from './columns.js';
import type { Queryable } from './database.js';
import { configuredColumns, toConfigured, type ConfiguredRow, type QueueRow } from './queues.js';

export interface Unsettled {
  /** Grows with every change of the queue's settings and of the limits it shares. */
  readonly change: number;
  readonly queue: ConfiguredRow;
}

/** Which contents of the ready queue have the settings, and the last grant that was made without them. */
export interface Settled {
  readonly generation: number;
  readonly lastGrant: number;
}

/** Queues whose newest settings no server has told the ready queue, as they are now. */
export async function findUnsettled(db: Queryable): Promise<Unsettled[]> {
  const rows = await db.query<QueueRow & { change: number }>(
    `select change, ${configuredColumns} from sluice.unsettled
     join sluice.queues on name = queue
     where settled_at is null`,
  );
  return rows.map((row) => ({ change: row.change, queue: toConfigured(row) }));
}

/**
 * The ready queue has these changes. One that was made since stays unsettled, and so do all when the contents
 * that have them are of an older generation: whoever fills it anew tells it. Rows are locked in the order in
 * which "sluice.unsettle" locks them.
 */
export async function settle(
  db: Queryable,
  changes: readonly Unsettled[],
  { generation, lastGrant }: Settled,
): Promise<void> {
  await db.query(
    `with held as materialized (
       select known.queue from sluice.unsettled known
       join unnest($1::text[], $2::bigint[]) as told (queue, change) using (queue, change)
       where settled_at is null
         and exists (select from sluice.generation where number = $3::bigint)
       order by known.queue collate "default"
       for update of known
     )
     update sluice.unsettled known set
       generation = $3::bigint, last_grant = $4::bigint, settled_at = now()
     from held where known.queue = held.queue`,
    [
      column(changes, ({ queue }) => queue.name),
      column(changes, ({ change }) => change),
      generation,
      lastGrant,
    ],
  );
}

/** Queues whose newest settings are not in force. Nearly always none. */
export async function findUnsettledNames(db: Queryable, limit: number): Promise<string[]> {
  const rows = await db.query<{ queue: string }>(
    'select queue from sluice.unsettled where settled_at is null limit $1',
    [limit],
  );
  return rows.map(({ queue }) => queue);
}

/** Those of these queues whose newest settings are not in force. */
export async function unsettledAmong(
  db: Queryable,
  queues: readonly string[],
): Promise<Set<string>> {
  const rows = await db.query<{ queue: string }>(
    'select queue from sluice.unsettled where settled_at is null and queue = any($1::text[])',
    [queues],
  );
  return new Set(rows.map(({ queue }) => queue));
}

/** Shared limits that a queue uses whose newest settings are not in force. */
export async function unsettledLimits(db: Queryable): Promise<Set<string>> {
  const rows = await db.query<{ name: string }>(
    `select distinct used ->> 'use' as name
     from sluice.unsettled join sluice.queues on name = queue
     cross join json_array_elements(limits) as used
     where settled_at is null and used ->> 'use' is not null`,
  );
  return new Set(rows.map(({ name }) => name));
}

/** Whether the settings of one of these queues changed a moment ago, so that claims may have been refused. */
export async function haveChanged(db: Queryable, queues: readonly string[]): Promise<boolean> {
  const [row] = await db.query<{ changed: boolean }>(
    'select exists (select from sluice.unsettled where queue = any($1::text[])) as changed',
    [queues],
  );
  return row?.changed === true;
}

/** No claim is as old: see `staleMs`. */
export async function forgetSettled(db: Queryable): Promise<void> {
  await db.query(`delete from sluice.unsettled where settled_at < now() - interval '1 minute'`);
}
