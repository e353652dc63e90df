import { closed, type Circuit, type PushBack } from '../domain/circuit.js';
import { likePatterns, unconfined, type Confinement } from '../domain/confinement.js';
import { SluiceError } from '../domain/errors.js';
import type { QueueLimit, QueueSettings } from '../domain/queue-settings.js';
import type { Page, PageRequest } from '../protocol/page.js';
import type { Instant, Queryable } from './database.js';
import { decodeCursor, defaultPageLimit, encodeCursor } from './paging.js';

export interface ConfiguredRow {
  readonly name: string;
  /** Grows by one with every change; whoever holds a greater one ignores a smaller one. */
  readonly version: number;
  readonly settings: QueueSettings;
  readonly circuit: Circuit;
}

type StoredLimit =
  { unit: string; rate: number; per_seconds: number; burst: number | null } | { use: string };

export interface QueueRow {
  name: string;
  version: number;
  limits: StoredLimit[];
  max_concurrency: number | null;
  max_ready: number;
  max_active: number | null;
  max_lanes: number;
  paused: boolean;
  paused_until: Date | null;
  low_to_medium_ms: number | null;
  low_to_high_ms: number | null;
  medium_to_high_ms: number | null;
  circuit: Circuit['kind'];
  circuit_reason: PushBack | null;
  circuit_until: Date | null;
  circuit_probes_at: Date | null;
  circuit_since: Date | null;
  circuit_step: 0 | 1 | null;
  circuit_trips: number;
  circuit_slots: number;
}

export const configuredColumns = `name, version, limits, max_concurrency, max_ready, max_active, max_lanes, paused,
  paused_until, low_to_medium_ms, low_to_high_ms, medium_to_high_ms, circuit, circuit_reason,
  circuit_until, circuit_probes_at, circuit_since, circuit_step, circuit_trips, circuit_slots`;

/** The row of a queue without settings says by `changed_at` when it was last named, to the hour. */
export async function ensureQueues(
  db: Queryable,
  names: readonly string[],
  now: Instant = null,
): Promise<void> {
  // Sorted: two servers that create the same queues at once wait for each other in one direction.
  await db.query(
    `insert into sluice.queues as q (name, version, changed_at)
     select distinct name, 0, coalesce($2::timestamptz, now())
     from unnest($1::text[]) as name order by name
     on conflict (name) do update set changed_at = excluded.changed_at
     where q.version = 0 and q.changed_at < excluded.changed_at - interval '1 hour'`,
    [names, now],
  );
}

/**
 * Deletes the rows of queues that have no settings, no living task, and were named by nobody for so
 * long. Answers with how many. Reads all living tasks once if there are such queues; those that have
 * tasks are then not looked at again for as long.
 */
export async function purgeQueues(
  db: Queryable,
  unusedMs: number,
  limit: number,
  now: Instant,
): Promise<number> {
  const found = await db.query<{ name: string }>(
    `select name from sluice.queues where ${isUnusedSql} order by name limit $3`,
    [now, unusedMs, limit],
  );
  if (found.length === 0) return 0;
  const names = found.map(({ name }) => name);
  const used = await db.query<{ queue: string }>(
    'select distinct queue from sluice.tasks where queue = any($1::text[])',
    [names],
  );
  const kept = new Set(used.map(({ queue }) => queue));
  await ensureQueues(db, [...kept], now);
  // Again with the condition: one of them may have been named or configured meanwhile.
  const gone = await db.query(
    `delete from sluice.queues where name = any($3::text[]) and ${isUnusedSql} returning name`,
    [now, unusedMs, names.filter((name) => !kept.has(name))],
  );
  return gone.length;
}

const isUnusedSql = `version = 0
  and changed_at < coalesce($1::timestamptz, now()) - $2::float8 * interval '1 millisecond'`;

export async function findQueue(db: Queryable, name: string): Promise<ConfiguredRow | null> {
  const [row] = await db.query<QueueRow>(
    `select ${configuredColumns} from sluice.queues where name = $1`,
    [name],
  );
  return row === undefined ? null : toConfigured(row);
}

/** Those of them that there are. */
export async function findQueues(
  db: Queryable,
  names: readonly string[],
): Promise<ConfiguredRow[]> {
  if (names.length === 0) return [];
  const rows = await db.query<QueueRow>(
    `select ${configuredColumns} from sluice.queues where name = any($1::text[])`,
    [names],
  );
  return rows.map(toConfigured);
}

/** For a change that says what was there before: nobody else changes it meanwhile. */
export async function lockQueue(tx: Queryable, name: string): Promise<ConfiguredRow | null> {
  const [row] = await tx.query<QueueRow>(
    `select ${configuredColumns} from sluice.queues where name = $1 for no key update`,
    [name],
  );
  return row === undefined ? null : toConfigured(row);
}

export async function listQueues(
  db: Queryable,
  page: PageRequest,
  within: Confinement = unconfined,
): Promise<Page<ConfiguredRow>> {
  const limit = page.limit ?? defaultPageLimit;
  const rows = await db.query<QueueRow>(
    `select ${configuredColumns} from sluice.queues
     where name > coalesce($1::text, '') and ($3::text[] is null or name like any($3))
     order by name limit $2`,
    [page.cursor === undefined ? null : decodeCursor(page.cursor), limit, likePatterns(within)],
  );
  const last = rows.length < limit ? undefined : rows.at(-1);
  return {
    items: rows.map(toConfigured),
    nextCursor: last === undefined ? null : encodeCursor(last.name),
  };
}

/** Those that were ever configured, or changed since. Index: queues_changed. */
export async function findConfigured(db: Queryable, since: Date | null): Promise<ConfiguredRow[]> {
  const rows = await db.query<QueueRow>(
    `select ${configuredColumns} from sluice.queues
     where version > 0 and changed_at >= coalesce($1::timestamptz, '-infinity')`,
    [since],
  );
  return rows.map(toConfigured);
}

/** Replaces the whole configuration, and leaves the circuit as it is. Of two at once both get a version; the later one stays. */
export async function putQueue(
  db: Queryable,
  name: string,
  settings: QueueSettings,
  now: Instant,
): Promise<ConfiguredRow> {
  const row = await writeQueue(db, name, settings, now, null);
  if (row !== undefined) return toConfigured(row);
  const uses = usedLimits(settings).join(', ');
  throw new SluiceError('invalid_request', `One of the limits ${uses} does not exist`);
}

/**
 * Compare-and-set: writes the settings only over the version that they were made from. `known` is null where there was
 * no queue. Null: the queue has another version by now, or a shared limit is gone; read again.
 */
export async function replaceQueue(
  db: Queryable,
  name: string,
  known: ConfiguredRow | null,
  settings: QueueSettings,
  now: Instant,
): Promise<ConfiguredRow | null> {
  const row = await writeQueue(db, name, settings, now, known?.version ?? noVersion);
  return row === undefined ? null : toConfigured(row);
}

/** Of a queue that must not be there: no row has it. */
const noVersion = -1;

function usedLimits({ limits }: QueueSettings): string[] {
  return [...new Set(limits.flatMap((limit) => ('use' in limit ? [limit.use] : [])))];
}

/** `version`: the one that the queue must have; null: any. Undefined: it has another, or a shared limit is not there. */
async function writeQueue(
  db: Queryable,
  name: string,
  settings: QueueSettings,
  now: Instant,
  version: number | null,
): Promise<QueueRow | undefined> {
  const { ageing } = settings;
  // The shared limits are locked against deleteLimit, which looks for queues that use them.
  const [row] = await db.query<QueueRow>(
    `with used as (
       select name from sluice.limits where name = any($2::text[]) order by name for key share
     )
     insert into sluice.queues as q
       (name, limits, max_concurrency, max_ready, max_active, paused, paused_until,
        low_to_medium_ms, low_to_high_ms, medium_to_high_ms, created_at, max_lanes)
     select $1, $3::json, $4::int, $5::int, $6::int, $7::boolean, $8::timestamptz,
       $9::bigint, $10::bigint, $11::bigint, coalesce($12::timestamptz, now()), $13::int
     where (select count(*) from used) = cardinality($2::text[])
     on conflict (name) do update set
       version = q.version + 1,
       changed_at = now(),
       limits = excluded.limits,
       max_concurrency = excluded.max_concurrency,
       max_ready = excluded.max_ready,
       max_active = excluded.max_active,
       max_lanes = excluded.max_lanes,
       paused = excluded.paused,
       paused_until = excluded.paused_until,
       low_to_medium_ms = excluded.low_to_medium_ms,
       low_to_high_ms = excluded.low_to_high_ms,
       medium_to_high_ms = excluded.medium_to_high_ms
     where $14::bigint is null or q.version = $14
     returning ${configuredColumns}`,
    [
      name,
      usedLimits(settings),
      JSON.stringify(settings.limits.map(toStored)),
      settings.maxConcurrency,
      settings.maxReady,
      settings.maxActive,
      settings.paused,
      settings.paused ? settings.pausedUntil : null,
      ageing.lowToMediumMs,
      ageing.lowToHighMs,
      ageing.mediumToHighMs,
      now,
      settings.maxLanes,
      version,
    ],
  );
  return row;
}

/** Creates the queue when it is not there. Null: until it is resumed. */
export async function pauseQueue(
  db: Queryable,
  name: string,
  until: Date | null,
): Promise<ConfiguredRow> {
  const rows = await db.query<QueueRow>(
    `insert into sluice.queues as q (name, paused, paused_until) values ($1, true, $2::timestamptz)
     on conflict (name) do update set
       version = q.version + 1, changed_at = now(), paused = true,
       paused_until = excluded.paused_until
     returning ${configuredColumns}`,
    [name, until],
  );
  return onlyRow(name, rows);
}

/** Whoever paused it: an operator, or its circuit. */
export async function resumeQueue(db: Queryable, name: string): Promise<ConfiguredRow> {
  const rows = await db.query<QueueRow>(
    `insert into sluice.queues as q (name) values ($1)
     on conflict (name) do update set
       version = q.version + 1, changed_at = now(), paused = false, paused_until = null,
       circuit = 'closed', circuit_reason = null, circuit_until = null, circuit_probes_at = null,
       circuit_since = null, circuit_step = null, circuit_trips = 0, circuit_slots = 0
     returning ${configuredColumns}`,
    [name],
  );
  return onlyRow(name, rows);
}

/**
 * Compare-and-set: null when the queue has another version by now, or is not there. Of all servers
 * that saw the same failures one opens the circuit.
 */
export async function changeCircuit(
  db: Queryable,
  name: string,
  version: number,
  circuit: Circuit,
): Promise<ConfiguredRow | null> {
  const open = circuit.kind === 'open' ? circuit : null;
  const recovering = circuit.kind === 'recovering' ? circuit : null;
  const trouble = open ?? recovering;
  const [row] = await db.query<QueueRow>(
    `update sluice.queues set
       version = version + 1, changed_at = now(), circuit = $3, circuit_reason = $4,
       circuit_until = $5::timestamptz, circuit_probes_at = $6::timestamptz,
       circuit_since = $7::timestamptz, circuit_step = $8::smallint,
       circuit_trips = $9::integer, circuit_slots = $10::integer
     where name = $1 and version = $2::bigint
     returning ${configuredColumns}`,
    [
      name,
      version,
      circuit.kind,
      trouble?.reason ?? null,
      open === null ? null : new Date(open.untilMs),
      open === null ? null : new Date(open.probesAtMs),
      recovering === null ? null : new Date(recovering.sinceMs),
      recovering?.step ?? null,
      trouble?.trips ?? 0,
      trouble?.slots ?? 0,
    ],
  );
  return row === undefined ? null : toConfigured(row);
}

function onlyRow(name: string, [row]: readonly QueueRow[]): ConfiguredRow {
  if (row === undefined) throw new Error(`queue ${name} was neither inserted nor updated`);
  return toConfigured(row);
}

export function toConfigured(row: QueueRow): ConfiguredRow {
  return {
    name: row.name,
    version: row.version,
    settings: {
      limits: row.limits.map(fromStored),
      maxConcurrency: row.max_concurrency,
      maxReady: row.max_ready,
      maxActive: row.max_active,
      maxLanes: row.max_lanes,
      paused: row.paused,
      pausedUntil: row.paused_until,
      ageing: {
        lowToMediumMs: row.low_to_medium_ms,
        lowToHighMs: row.low_to_high_ms,
        mediumToHighMs: row.medium_to_high_ms,
      },
    },
    circuit: toCircuit(row),
  };
}

/** Constraints hold that what belongs to a kind is there. */
function toCircuit(row: QueueRow): Circuit {
  const { circuit_reason: reason, circuit_trips: trips, circuit_slots: slots } = row;
  const { circuit_until: until, circuit_probes_at: probesAt } = row;
  const { circuit_since: since, circuit_step: step } = row;
  if (reason !== null && until !== null && probesAt !== null) {
    const times = { untilMs: until.getTime(), probesAtMs: probesAt.getTime() };
    return { kind: 'open', reason, trips, slots, ...times };
  }
  if (reason !== null && since !== null && step !== null) {
    return { kind: 'recovering', reason, trips, slots, sinceMs: since.getTime(), step };
  }
  return closed;
}

function toStored(limit: QueueLimit): StoredLimit {
  if ('use' in limit) return { use: limit.use };
  const { unit, rate, perSeconds, burst } = limit;
  return { unit, rate, per_seconds: perSeconds, burst };
}

function fromStored(limit: StoredLimit): QueueLimit {
  if ('use' in limit) return { use: limit.use };
  const { unit, rate, per_seconds: perSeconds, burst } = limit;
  return { unit, rate, perSeconds, burst };
}
