import { likePatterns, unconfined, type Confinement } from '../domain/confinement.js';
import type { JsonObject } from '../domain/json.js';
import type { Priority } from '../domain/priority.js';
import { defaultQueue, type Cost } from '../domain/queue-settings.js';
import { maxTaskTypes, type ToldDefinition } from '../domain/task-types.js';
import type { Page, PageRequest } from '../protocol/page.js';
import type {
  ListedTaskType,
  TaskDefaults,
  TaskTypeDefinition,
  TaskTypeView,
} from '../protocol/task-types-api.js';
import type { TaskTypeDefinitionWire } from '../protocol/task-types-schema.js';
import { retryFromWire, retryToWire } from '../protocol/task-types-wire.js';
import { column } from './columns.js';
import type { Instant, Queryable } from './database.js';
import { decodeCursor, defaultPageLimit, encodeCursor } from './paging.js';

/** The definition of a type that counts. */
export interface TaskTypeRow extends ToldDefinition {
  readonly name: string;
  readonly revision: number;
  readonly defaults: TaskDefaults;
  readonly seenAt: Date;
}

interface DefaultsRow {
  name: string;
  queue: string | null;
  priority: Priority | null;
  capabilities: string[] | null;
  timeout_seconds: number | null;
  max_retries: number | null;
  cost: Cost | null;
}

interface KnownRow extends DefaultsRow {
  revision: number;
  fingerprint: string;
  version: string | null;
  within: string[] | null;
  seen_at: Date;
}

const defaultColumns =
  't.name, t.queue, t.priority, t.capabilities, t.timeout_seconds, t.max_retries, t.cost';
/** Without what only people look at: a schema may take 16 KiB. */
const knownColumns = `${defaultColumns}, t.revision, t.fingerprint, t.version, t.within, t.seen_at`;

export async function findTaskTypes(
  db: Queryable,
  names: readonly string[],
): Promise<TaskTypeRow[]> {
  const rows = await db.query<KnownRow>(
    `select ${knownColumns} from sluice.task_types t where t.name = any($1::text[])`,
    [names],
  );
  return rows.map(toRow);
}

/** Null: all of them. Index: task_types_changed. */
export async function findTaskTypesChanged(
  db: Queryable,
  since: Date | null,
): Promise<TaskTypeRow[]> {
  const rows = await db.query<KnownRow>(
    `select ${knownColumns} from sluice.task_types t
     where $1::timestamptz is null or t.changed_at >= $1::timestamptz`,
    [since],
  );
  return rows.map(toRow);
}

export interface NewDefinition {
  readonly definition: TaskTypeDefinition;
  readonly told: ToldDefinition;
}

/** Of those that have no row: the ones that got it. Others were told meanwhile, or there are too many types. */
export async function insertTaskTypes(
  db: Queryable,
  definitions: readonly NewDefinition[],
  now: Instant,
): Promise<TaskTypeRow[]> {
  // Sorted: two servers that insert the same types at once wait for each other in one direction.
  const rows = await db.query<KnownRow>(
    `insert into sluice.task_types as t
       (${writtenColumns}, within, fingerprint, version, seen_at)
     select ${writtenValues}, $10::text[], told.fingerprint, $12::text,
       coalesce($13::timestamptz, now())
     from ${toldRows}
     where (select count(*) from sluice.task_types) + told.place <= $14::int
     order by told.name
     on conflict (name) do nothing
     returning ${knownColumns}`,
    [...toldParameters(definitions), now, maxTaskTypes],
  );
  return rows.map(toRow);
}

export interface ChangedDefinition extends NewDefinition {
  /** Only while the row has it: somebody else may define it at the same time. */
  readonly revision: number;
}

/** Those that were changed. */
export async function changeTaskTypes(
  db: Queryable,
  definitions: readonly ChangedDefinition[],
  now: Instant,
): Promise<TaskTypeRow[]> {
  const rows = await db.query<KnownRow>(
    `update sluice.task_types t set
       queue = told.queue, priority = told.priority, capabilities = told.capabilities::json,
       timeout_seconds = told.timeout_seconds, max_retries = told.max_retries,
       cost = told.cost::json, retry = told.retry::json, input_schema = told.input_schema::json,
       within = $10::text[], fingerprint = told.fingerprint, version = $12::text,
       revision = nextval('sluice.task_type_revisions'), changed_at = now(),
       seen_at = coalesce($13::timestamptz, now())
     from ${toldRows} join unnest($14::bigint[]) with ordinality as present (revision, place)
       using (place)
     where t.name = told.name and t.revision = present.revision
     returning ${knownColumns}`,
    [...toldParameters(definitions), now, column(definitions, ({ revision }) => revision)],
  );
  return rows.map(toRow);
}

const writtenColumns =
  'name, queue, priority, capabilities, timeout_seconds, max_retries, cost, retry, input_schema';
const writtenValues = `told.name, told.queue, told.priority, told.capabilities::json,
  told.timeout_seconds, told.max_retries, told.cost::json, told.retry::json, told.input_schema::json`;

const toldRows = `unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::int[], $6::int[], $7::text[], $8::text[],
    $9::text[], $11::text[]
  ) with ordinality as told (
    name, queue, priority, capabilities, timeout_seconds, max_retries, cost, retry, input_schema,
    fingerprint, place
  )`;

/** One worker tells them: they have one version and one reach. */
function toldParameters(definitions: readonly NewDefinition[]): unknown[] {
  const of = (pick: (definition: TaskTypeDefinition) => string | number | null) =>
    column(definitions, ({ definition }) => pick(definition));
  const [first] = definitions;
  return [
    of(({ taskType }) => taskType),
    of(({ queue }) => queue ?? null),
    of(({ priority }) => priority ?? null),
    of(({ capabilities }) => jsonOrNull(capabilities)),
    of(({ timeoutSeconds }) => timeoutSeconds ?? null),
    of(({ maxRetries }) => maxRetries ?? null),
    of(({ cost }) => jsonOrNull(cost)),
    of(({ retry }) => (retry === undefined ? null : JSON.stringify(retryToWire(retry)))),
    of(({ inputSchema }) => jsonOrNull(inputSchema)),
    first?.told.within ?? null,
    column(definitions, ({ told }) => told.fingerprint),
    first?.told.version ?? null,
  ];
}

function jsonOrNull(value: object | undefined): string | null {
  return value === undefined ? null : JSON.stringify(value);
}

export interface HeldType {
  readonly name: string;
  readonly version: string | null;
}

export interface LivingHolder {
  readonly name: string;
  readonly ofPresentVersion: boolean;
}

/**
 * Of these types: those that a living worker handles, and whether one with this version does. Without a join: to
 * compare 1,000 types with each of 10 workers that handle as many took 300 ms. Postgres makes a hash of a constant array.
 */
export async function findLivingHolders(
  db: Queryable,
  types: readonly HeldType[],
): Promise<LivingHolder[]> {
  const rows = await db.query<{ name: string; of_present_version: boolean }>(
    `select living.name, bool_or(living.name || living.version = any($2::text[])) as of_present_version
     from (
       select unnest(task_types) as name, coalesce(e'\n' || version, '') as version
       from sluice.workers where status <> 'dead'
     ) living
     where living.name = any($1::text[])
     group by living.name`,
    [
      column(types, ({ name }) => name),
      column(types, ({ name, version }) => (version === null ? name : `${name}\n${version}`)),
    ],
  );
  return rows.map((row) => ({ name: row.name, ofPresentVersion: row.of_present_version }));
}

/** Told again by a worker, and not written otherwise. */
export async function noteTypesSeen(
  db: Queryable,
  names: readonly string[],
  now: Instant,
): Promise<void> {
  await db.query(
    `update sluice.task_types set seen_at = coalesce($2::timestamptz, now())
     where name = any($1::text[])`,
    [names, now],
  );
}

/** A worker may run for months without registering again. To the day, so that few rows are written. */
export async function noteTypesOfLiving(db: Queryable, now: Instant): Promise<void> {
  await db.query(
    `update sluice.task_types t set seen_at = instant
     from coalesce($1::timestamptz, now()) as instant,
       (select distinct unnest(task_types) as name from sluice.workers where status <> 'dead') living
     where t.name = living.name and t.seen_at < instant - interval '1 day'`,
    [now],
  );
}

/** Those that no worker had for so long. Index: task_types_seen. */
export async function purgeTaskTypes(
  db: Queryable,
  unseenMs: number,
  now: Instant,
): Promise<string[]> {
  const rows = await db.query<{ name: string }>(
    `delete from sluice.task_types
     where seen_at < coalesce($1::timestamptz, now()) - $2::float8 * interval '1 millisecond'
     returning name`,
    [now, unseenMs],
  );
  return rows.map(({ name }) => name);
}

interface ListedRow extends DefaultsRow {
  retry: NonNullable<TaskTypeDefinitionWire['retry']> | null;
  version: string | null;
  changed_at: Date;
  seen_at: Date;
  has_input_schema: boolean;
}

const listedColumns = `${defaultColumns}, t.retry, t.version, t.changed_at, t.seen_at,
  t.input_schema is not null as has_input_schema`;
const isReached = (patterns: string) =>
  `(${patterns}::text[] is null or coalesce(t.queue, '${defaultQueue}') like any(${patterns}))`;

/** A row takes less than 5 KiB here: a page of a thousand stays below what an answer may take. */
export async function listTaskTypes(
  db: Queryable,
  page: PageRequest,
  within: Confinement = unconfined,
): Promise<Page<ListedTaskType>> {
  const limit = page.limit ?? defaultPageLimit;
  const rows = await db.query<ListedRow>(
    `select ${listedColumns} from sluice.task_types t
     where t.name > coalesce($1::text, '') and ${isReached('$3')}
     order by t.name limit $2`,
    [page.cursor === undefined ? null : decodeCursor(page.cursor), limit, likePatterns(within)],
  );
  const last = rows.length < limit ? undefined : rows.at(-1);
  return {
    items: rows.map(toListed),
    nextCursor: last === undefined ? null : encodeCursor(last.name),
  };
}

export async function findTaskType(
  db: Queryable,
  name: string,
  within: Confinement = unconfined,
): Promise<TaskTypeView | null> {
  const [row] = await db.query<ListedRow & { input_schema: JsonObject | null }>(
    `select ${listedColumns}, t.input_schema from sluice.task_types t
     where t.name = $1 and ${isReached('$2')}`,
    [name, likePatterns(within)],
  );
  return row === undefined ? null : { ...toListed(row), inputSchema: row.input_schema };
}

function toRow(row: KnownRow): TaskTypeRow {
  return {
    name: row.name,
    revision: row.revision,
    queue: row.queue,
    fingerprint: row.fingerprint,
    version: row.version,
    within: row.within,
    seenAt: row.seen_at,
    defaults: {
      ...(row.queue === null ? {} : { queue: row.queue }),
      ...(row.priority === null ? {} : { priority: row.priority }),
      ...(row.capabilities === null ? {} : { capabilities: row.capabilities }),
      ...(row.timeout_seconds === null ? {} : { timeoutSeconds: row.timeout_seconds }),
      ...(row.max_retries === null ? {} : { maxRetries: row.max_retries }),
      ...(row.cost === null ? {} : { cost: row.cost }),
    },
  };
}

function toListed(row: ListedRow): ListedTaskType {
  return {
    taskType: row.name,
    queue: row.queue,
    priority: row.priority,
    capabilities: row.capabilities ?? [],
    timeoutSeconds: row.timeout_seconds,
    maxRetries: row.max_retries,
    cost: row.cost,
    retry: row.retry === null ? null : retryFromWire(row.retry),
    version: row.version,
    definedAt: row.changed_at,
    seenAt: row.seen_at,
    hasInputSchema: row.has_input_schema,
  };
}
