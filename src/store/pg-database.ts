import pg from 'pg';

import { hidePassword } from '../runtime/hide-password.js';
import { DatabaseAwayError, preparedName, type Database, type Queryable } from './database.js';
import { boundedReads } from './bounded-reads.js';
import { DatabaseClock } from './database-clock.js';
import { checkFitness } from './database-fitness.js';
import {
  codeOf,
  isBroken,
  isLostStatement,
  isPoolFull,
  knownStatement,
  translate,
  unknownStatement,
} from './failures.js';
import { OrderedStatements } from './ordered-statements.js';
import { PgHosts, ReadOnlyError, reasonOf } from './pg-hosts.js';
import {
  beginShared,
  queryShared,
  scriptWithSettings,
  setUpStatement,
  type Settings,
} from './session-settings.js';
import { defaultPatience, SilentConnections, type Patience } from './silent-connections.js';

export interface PgDatabaseOptions {
  readonly url: string;
  readonly poolSize?: number;
  /** A connection that broke while nobody used it; the pool replaces it. */
  readonly onError?: (error: Error) => void;
  /** For tests: how long an answer may be missing. */
  readonly patience?: Partial<Patience>;
}

/** One heartbeat statement at a time, and what it asks for besides. */
const vitalConnections = 2;
/** However many people look at lists: what is left of Postgres is for the tasks. */
const mostReads = 4;

/** Two claims, a report and a feed are under way at once; and what is locked tries again by itself. */
const mostHot = 8;

export async function openPgDatabase(options: PgDatabaseOptions): Promise<Database> {
  const clock = new DatabaseClock();
  const patience = { ...defaultPatience, ...options.patience };
  const hosts = new PgHosts(options.url, patience.askMs);
  const findBusy = (pids: readonly number[]) => findBusyOf(hosts, pids, patience.askMs);
  const silent = new SilentConnections({ patience, findBusy });
  const parts = { ...options, clock, patience, silent, hosts };
  const poolSize = options.poolSize ?? 10;
  const pool = createPool(parts, poolSize);
  const hotPool = createPool(parts, Math.min(poolSize, mostHot), { isHot: true });
  const urgentPool = createPool(parts, 1);
  const orderedPool = createPool(parts, 1, { isHot: true, pipeline: true });
  const vitalPool = createPool(parts, vitalConnections);
  const readParts = { ...parts, settings: { statement_timeout: `${patience.readMs}ms` } };
  const readsAtOnce = Math.min(poolSize, mostReads);
  const readPool = createPool(readParts, readsAtOnce);
  const [all, hot] = [queryable(pool, parts), queryable(hotPool, parts)];
  const database: Database = {
    ...all,
    query: (text, parameters) =>
      (preparedName(text) === undefined ? all : hot).query(text, parameters),
    urgent: queryable(urgentPool, parts),
    vital: queryable(vitalPool, parts),
    reads: boundedReads(queryable(readPool, readParts), {
      max: readsAtOnce,
      readMs: patience.readMs,
    }),
    ordered: orderedIn(orderedPool, parts),
    transaction: async (work) => {
      const client = await connect(pool, hosts);
      return withClient(client, () => inTransaction(client, parts, work));
    },
    isExclusive: false,
    nowMs: () => clock.nowMs(),
    close: async () => {
      const pools = [pool, hotPool, urgentPool, orderedPool, vitalPool, readPool];
      const open = pools.filter(({ ended }) => !ended);
      await Promise.all(open.map((one) => one.end()));
    },
  };

  try {
    await checkFitness(database, options.url);
  } catch (error) {
    await database.close();
    throw error instanceof DatabaseAwayError ? unreachable(options.url, error, hosts) : error;
  }
  return database;
}

function unreachable(url: string, { cause }: DatabaseAwayError, hosts: PgHosts): DatabaseAwayError {
  return new DatabaseAwayError(
    `Postgres can't be reached at ${hidePassword(url)}: ${hosts.whyNone() ?? reasonOf(cause)}\n` +
      'See that it runs, and that DATABASE_URL or --database-url is right.',
    { cause },
  );
}

function queryable(pool: pg.Pool, parts: PoolParts): Queryable {
  const on = async <T>(work: (connection: Queryable) => Promise<T>): Promise<T> => {
    const client = await connect(pool, parts.hosts);
    return withClient(client, () => work(queryableOn(client, parts)));
  };
  return {
    query: (text, parameters) => on((connection) => connection.query(text, parameters)),
    run: (script) => on((connection) => connection.run(script)),
  };
}

/** `isInTransaction`: what began it has brought our settings along. */
function queryableOn(client: pg.PoolClient, parts: PoolParts, isInTransaction = false): Queryable {
  const isOwn = isInTransaction || ownConnections.has(client);
  const run = isInTransaction ? runOnce : runOn;
  return {
    query: (text, parameters) =>
      answer(client, parts, () => run(client, isOwn, text, parameters, parts.settings)),
    run: async (script) => {
      const text = isOwn ? script : scriptWithSettings(script);
      await answer(client, parts, () => client.query(text), true);
    },
  };
}

async function answer<T>(
  client: pg.PoolClient,
  { silent, hosts }: PoolParts,
  ask: () => Promise<T>,
  isScript = false,
): Promise<T> {
  try {
    return await silent.answer(client, ask, isScript);
  } catch (error) {
    hosts.noteFailure(client, error);
    throw error;
  }
}

function orderedIn(pool: pg.Pool, parts: PoolParts): Pick<Queryable, 'query'> {
  const statements = new OrderedStatements({
    connect: () => connect(pool, parts.hosts),
    mayOverlap: (client, text) => ownConnections.has(client) && isParsed(client, text),
    isBroken,
  });
  return {
    query: async <Row>(text: string, parameters?: readonly unknown[]) => {
      try {
        return await statements.run(text, (client) =>
          answer(client, parts, () =>
            runOn<Row>(client, ownConnections.has(client), text, parameters),
          ),
        );
      } catch (error) {
        throw translate(error);
      }
    },
  };
}

interface PoolParts extends PgDatabaseOptions {
  readonly clock: DatabaseClock;
  readonly patience: Patience;
  readonly silent: SilentConnections;
  readonly hosts: PgHosts;
  /** Of its connections, instead of those that all have. */
  readonly settings?: Settings;
}

function createPool(
  { onError, clock, patience, silent, hosts, settings = {} }: PoolParts,
  max: number,
  { isHot = false, pipeline = false } = {},
): pg.Pool {
  const pool = new pg.Pool({
    ...(pipeline ? { pipeline } : {}),
    // Who comes after a quiet while finds its statements prepared.
    min: isHot ? 1 : 0,
    ...connectionTo(patience.askMs),
    Client: hosts.clientClass(),
    max,
    // A new connection finds the new primary after a failover, and measures the clock again.
    maxLifetimeSeconds: 600,
    types: { getTypeParser },
    verify: (client, done) => {
      // Without a listener, a connection that breaks in the middle of a transaction ends the process.
      client.on('error', (error: Error) => onError?.(error));
      silent.watch(client);
      const prepared = silent.answer(client, () =>
        prepareConnection(client, clock, hosts, isHot, settings),
      );
      prepared.then((pid) => {
        hosts.succeeded(client);
        silent.setUp(client, pid);
        done();
      }, done);
    },
  });
  // Told by the connection's own listener already; without one here it would be thrown.
  pool.on('error', () => undefined);
  return pool;
}

/** Those that nobody shares with us: what is prepared there is still there at the next call. */
const ownConnections = new WeakSet<pg.PoolClient>();

function connectionTo(timeoutMs: number) {
  return {
    application_name: 'sluice',
    connectionTimeoutMillis: timeoutMs,
    // One that nobody waits on and that is dead is found out by the kernel, ten probes later.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  };
}

/** Who waits for its client, to read from it or to send to it, works on nothing. */
const findBusySql = `
select
  pid, state = 'active' and wait_event_type is distinct from 'Client' as is_busy,
  coalesce(state, 'disabled') = 'disabled' as is_unknown
from pg_stat_activity where pid = any($1::integer[])`;

interface BackendRow {
  readonly pid: number;
  readonly is_busy: boolean;
  /** `track_activities` is off. */
  readonly is_unknown: boolean;
}

/** Over a connection of its own: those of the pools may all be silent. */
async function findBusyOf(
  hosts: PgHosts,
  pids: readonly number[],
  askMs: number,
): Promise<ReadonlySet<number> | null> {
  const client = new pg.Client({
    ...connectionTo(askMs),
    connectionString: hosts.lastGoodUrl,
    query_timeout: askMs,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<BackendRow>(findBusySql, [pids]);
    if (rows.some((row) => row.is_unknown)) return null;
    return new Set(rows.filter((row) => row.is_busy).map(({ pid }) => pid));
  } catch (error) {
    // It is there, and has no connection left, say.
    if (error instanceof pg.DatabaseError) return null;
    throw error;
  } finally {
    client.end().catch(() => undefined);
  }
}

interface SetUpRow {
  readonly now_ms: number;
  readonly pid: number;
  readonly is_read_only: boolean;
  readonly is_standby: boolean;
}

/** Answers with the process that this connection is to, for as long as it is open; null behind a pooler. */
async function prepareConnection(
  client: pg.PoolClient,
  clock: DatabaseClock,
  hosts: PgHosts,
  isHot: boolean,
  settings: Settings,
): Promise<number | null> {
  const named = 'processID' in client ? (client.processID as number | null) : null;
  const sentAtMs = clock.localMs();
  const { rows } = await client.query<SetUpRow>(setUpStatement(named, isHot, settings));
  const [row] = rows;
  clock.measured(row?.now_ms ?? NaN, sentAtMs);
  if (hosts.mustWrite && row?.is_read_only === true) throw new ReadOnlyError(row.is_standby);
  const pid = row?.pid ?? null;
  if (named !== pid) return null;
  ownConnections.add(client);
  return pid;
}

/** Of the driver: the prepared statements that it takes Postgres to know on this connection. */
interface Prepared {
  readonly parsedStatements: Record<string, string>;
}

function parsedOn({ connection }: pg.PoolClient): Prepared['parsedStatements'] {
  return (connection as unknown as Prepared).parsedStatements;
}

/** Else the statement may have to be parsed again, when the Parse in front of it fails. */
function isParsed(client: pg.PoolClient, text: string): boolean {
  const name = preparedName(text);
  return name === undefined || parsedOn(client)[name] !== undefined;
}

/** A lost statement did not run: each was parsed by then, or is parsed by the next try. */
const mostTries = 4;

async function runOn<Row>(
  client: pg.PoolClient,
  isOwn: boolean,
  text: string,
  parameters: readonly unknown[] | undefined,
  settings: Settings = {},
): Promise<Row[]> {
  for (let tries = 1; ; tries++) {
    try {
      return await runOnce(client, isOwn, text, parameters, settings);
    } catch (error) {
      if (!isLostStatement(error) || tries === mostTries) throw error;
    }
  }
}

/** In a transaction: after any error Postgres does nothing more in it. */
async function runOnce<Row>(
  client: pg.PoolClient,
  isOwn: boolean,
  text: string,
  parameters: readonly unknown[] | undefined,
  settings: Settings = {},
): Promise<Row[]> {
  const values = parameters as unknown[] | undefined;
  if (!isOwn) return (await queryShared(client, text, values, settings)).rows as Row[];
  const name = ownConnections.has(client) ? preparedName(text) : undefined;
  if (name === undefined || values === undefined) {
    return (await client.query(text, values)).rows as Row[];
  }
  try {
    return (await client.query({ name, text, values })).rows as Row[];
  } catch (error) {
    if (codeOf(error) === unknownStatement) Reflect.deleteProperty(parsedOn(client), name);
    if (codeOf(error) === knownStatement) parsedOn(client)[name] = text;
    throw error;
  }
}

async function inTransaction<T>(
  client: pg.PoolClient,
  parts: PoolParts,
  work: (connection: Queryable) => Promise<T>,
): Promise<T> {
  const connection = queryableOn(client, parts, true);
  await connection.query(ownConnections.has(client) ? 'begin' : beginShared);
  try {
    const result = await work(connection);
    await connection.query('commit');
    return result;
  } catch (error) {
    if (!isBroken(error)) await connection.query('rollback');
    throw error;
  }
}

/** Tries each host once; connections to a host that accepts no writes any more are closed. */
async function connect(pool: pg.Pool, hosts: PgHosts): Promise<pg.PoolClient> {
  for (let tries = 1; ; tries++) {
    const host = hosts.preferred;
    try {
      return await connectCurrent(pool, hosts);
    } catch (error) {
      if (!isPoolFull(error)) hosts.failed(host, error);
      if (tries >= hosts.count || hosts.preferred === host) throw translate(error);
    }
  }
}

async function connectCurrent(pool: pg.Pool, hosts: PgHosts): Promise<pg.PoolClient> {
  for (;;) {
    const client = await pool.connect();
    if (!hosts.isOutdated(client)) return client;
    client.release(true);
  }
}

/** Gives the connection back, or away when it is broken. */
async function withClient<T>(client: pg.PoolClient, work: () => Promise<T>): Promise<T> {
  try {
    const result = await work();
    client.release();
    return result;
  } catch (error) {
    client.release(isBroken(error));
    throw translate(error);
  }
}

/** As PGlite parses: a bigint is a number. Ours are sequences and versions, far below 2^53. */
const getTypeParser: typeof pg.types.getTypeParser = (oid, format) =>
  oid === pg.types.builtins.INT8
    ? Number
    : (pg.types.getTypeParser(oid, format) as (text: string) => unknown);
