import pg from 'pg';

import { sessionSettings } from './database.js';

/**
 * Every setting that our statements and the parsing of their answers depend on. A role, a database or
 * postgresql.conf may set each of them to something else. `default_transaction_read_only` is left alone:
 * hosting services set it to protect a full disk.
 */
export const postgresSettings: Readonly<Record<string, string>> = {
  ...sessionSettings,
  enable_nestloop: 'on',
  enable_indexscan: 'on',
  enable_indexonlyscan: 'on',
  enable_bitmapscan: 'on',
  enable_partition_pruning: 'on',
  // The text form of values, in both directions.
  DateStyle: 'ISO, MDY',
  IntervalStyle: 'postgres',
  TimeZone: 'UTC',
  extra_float_digits: '1',
  bytea_output: 'hex',
  array_nulls: 'on',
  standard_conforming_strings: 'on',
  client_encoding: 'UTF8',
  // Our names are qualified. Built-in functions are found first, as long as pg_catalog is not named.
  search_path: 'public',
  // A claim must see what was committed while it waited for its turn.
  default_transaction_isolation: 'read committed',
  // A locked row delays only itself: the batch gives up, and what is locked is tried again alone.
  lock_timeout: '200ms',
  statement_timeout: '60s',
  idle_in_transaction_session_timeout: '60s',
  idle_session_timeout: '0',
};

export type Settings = Readonly<Record<string, string>>;

/** Since Postgres 17. */
const newerSettings: Readonly<Record<string, string>> = { transaction_timeout: '0' };

/**
 * For statements of the hot path, which have one plan whatever their values are. Postgres would plan
 * them anew at every call as long as batches are small: 0.2 ms for a claim.
 */
const planOnce: Readonly<Record<string, string>> = { plan_cache_mode: 'force_generic_plan' };

const inTransaction = [listOf(postgresSettings, 'true'), newerListOf('true')].join(', ');

/**
 * Sets up a connection, and answers with what is behind it. A pooler such as PgBouncer names a process of
 * its own when we connect (BackendKeyData), and Postgres its own when it is asked. Where they differ,
 * the settings end with this statement: others use the connection after us. Sent as a statement because
 * PgBouncer refuses a connection that brings unknown start-up parameters.
 */
export function setUpStatement(processId: number | null, isHot: boolean, own: Settings): string {
  const isShared = `pg_backend_pid() is distinct from ${processId ?? 'null'}`;
  const all = { ...postgresSettings, ...own, ...(isHot ? planOnce : {}) };
  return `select ${[listOf(all, isShared), newerListOf(isShared)].join(', ')},
    date_part('epoch', clock_timestamp()) * 1000 as now_ms, pg_backend_pid() as pid,
    current_setting('transaction_read_only')::boolean as is_read_only,
    pg_is_in_recovery() as is_standby`;
}

/** Begins a transaction on a shared connection, with our settings until it ends. */
export const beginShared = `begin isolation level read committed; select ${inTransaction}`;

/** Several statements that run as one transaction on a shared connection. */
export function scriptWithSettings(script: string): string {
  return `select ${inTransaction}; ${script}`;
}

function listOf(settings: Readonly<Record<string, string>>, isLocal: string): string {
  return Object.entries(settings)
    .map(([name, value]) => `set_config('${name}', '${value}', ${isLocal})`)
    .join(', ');
}

/** A Postgres that does not know a setting would refuse to set it. */
function newerListOf(isLocal: string): string {
  return Object.entries(newerSettings)
    .map(
      ([name, value]) =>
        `case when current_setting('${name}', true) is not null
         then set_config('${name}', '${value}', ${isLocal}) end`,
    )
    .join(', ');
}

/** What the class has that its types do not say. */
interface DriverQuery extends pg.Submittable {
  submit(connection: pg.Connection): Error | null;
  handleDataRow(message: unknown): void;
  handleCommandComplete(message: unknown, connection: pg.Connection): void;
}

type Callback = (error: Error | null | undefined, result: pg.QueryResult) => void;

const BaseQuery = pg.Query as unknown as new (
  config: pg.QueryConfig & { readonly queryMode: 'extended' },
  callback: Callback,
) => DriverQuery;

/** The parts of the extended protocol that send a statement without waiting for its answer. */
interface ExtendedProtocol {
  readonly stream: { cork(): void; uncork(): void };
  parse(message: { readonly text: string }): void;
  bind(message: object): void;
  execute(message: object): void;
}

/**
 * A statement for a connection that a pooler shares: our settings are sent before it without a Sync in
 * between, so that both are one transaction and one round trip, and the settings end with it.
 */
class QueryWithSettings extends BaseQuery {
  #areSet = false;
  readonly #settings: string;

  constructor(config: ConstructorParameters<typeof BaseQuery>[0], own: Settings, done: Callback) {
    super(config, done);
    this.#settings = [
      inTransaction,
      ...(Object.keys(own).length === 0 ? [] : [listOf(own, 'true')]),
    ].join(', ');
  }

  override submit(connection: pg.Connection): Error | null {
    const protocol = connection as unknown as ExtendedProtocol;
    protocol.stream.cork();
    try {
      protocol.parse({ text: `select ${this.#settings}` });
      protocol.bind({});
      protocol.execute({});
      return super.submit(connection);
    } finally {
      protocol.stream.uncork();
    }
  }

  override handleDataRow(message: unknown): void {
    if (this.#areSet) super.handleDataRow(message);
  }

  override handleCommandComplete(message: unknown, connection: pg.Connection): void {
    if (this.#areSet) super.handleCommandComplete(message, connection);
    this.#areSet = true;
  }
}

/**
 * Postgres runs "detach partition … concurrently" outside of transactions only, so on a shared connection
 * our lock_timeout can't be sent with it: it would wait for as long as anybody's transaction is open. There the
 * partition is detached inside a transaction instead. Others wait behind its lock on the parent, 50 ms at most.
 */
const aloneOnly = /^(alter table .* detach partition .*) concurrently$/;
const exclusiveLock: Settings = { lock_timeout: '50ms' };

export function queryShared(
  client: pg.PoolClient,
  text: string,
  values: unknown[] | undefined,
  own: Settings,
): Promise<pg.QueryResult> {
  const detach = aloneOnly.exec(text)?.[1];
  const settings = detach === undefined ? own : { ...own, ...exclusiveLock };
  return new Promise((resolve, reject) => {
    const config = { text: detach ?? text, values: values ?? [], queryMode: 'extended' as const };
    client.query(
      new QueryWithSettings(config, settings, (error, result) => {
        if (error) reject(error);
        else resolve(result);
      }),
    );
  });
}
