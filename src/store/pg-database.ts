import pg from 'pg';

import { hidePassword } from '../runtime/hide-password.js';
import {
  DatabaseAwayError,
  LockedError,
  preparedName,
  sessionSettings,
  type Database,
  type Queryable,
} from './database.js';
import { DatabaseClock } from './database-clock.js';
import { OrderedStatements } from './ordered-statements.js';
import { withoutValues } from './without-values.js';

export interface PgDatabaseOptions {
  readonly url: string;
  readonly poolSize?: number;
  /** A connection that broke while nobody used it; the pool replaces it. */
  readonly onError?: (error: Error) => void;
}

const settings: Readonly<Record<string, string>> = {
  ...sessionSettings,
  // A claim must see what was committed while it waited for its turn.
  default_transaction_isolation: 'read committed',
  // A locked row delays only itself: the batch gives up, and what is locked is tried again alone.
  lock_timeout: '200ms',
  statement_timeout: '60s',
  idle_in_transaction_session_timeout: '60s',
};

// Sent as a statement: PgBouncer refuses a connection that brings unknown start-up parameters.
const setUp = `select ${Object.entries(settings)
  .map(([name, value]) => `set_config('${name}', '${value}', false)`)
  .join(', ')}, date_part('epoch', clock_timestamp()) * 1000 as now_ms, pg_backend_pid() as pid`;

/**
 * For statements of the hot path, which have one plan whatever their values are. Postgres would plan
 * them anew at every call as long as batches are small: 0.2 ms for a claim.
 */
const planOnce = `select set_config('plan_cache_mode', 'force_generic_plan', false)`;

/** Two claims, a report and a feed are under way at once; and what is locked tries again by itself. */
const mostHot = 8;

export async function openPgDatabase(options: PgDatabaseOptions): Promise<Database> {
  const clock = new DatabaseClock();
  const poolSize = options.poolSize ?? 10;
  const pool = createPool(options, clock, poolSize);
  const hotPool = createPool(options, clock, Math.min(poolSize, mostHot), { isHot: true });
  const urgentPool = createPool(options, clock, 1);
  const orderedPool = createPool(options, clock, 1, { isHot: true, pipeline: true });
  const [all, hot] = [queryable(pool), queryable(hotPool)];
  const database: Database = {
    ...all,
    query: (text, parameters) =>
      (preparedName(text) === undefined ? all : hot).query(text, parameters),
    urgent: queryable(urgentPool),
    ordered: orderedIn(orderedPool),
    transaction: async (work) => {
      const client = await connect(pool);
      return withClient(client, () => inTransaction(client, work));
    },
    nowMs: () => clock.nowMs(),
    close: async () => {
      const open = [pool, hotPool, urgentPool, orderedPool].filter(({ ended }) => !ended);
      await Promise.all(open.map((one) => one.end()));
    },
  };

  try {
    await database.query('select');
  } catch (error) {
    await database.close();
    throw error instanceof DatabaseAwayError ? unreachable(options.url, error) : error;
  }
  return database;
}

function unreachable(url: string, { cause }: DatabaseAwayError): DatabaseAwayError {
  return new DatabaseAwayError(
    `Postgres can't be reached at ${hidePassword(url)}: ${reasonOf(cause)}\n` +
      'See that it runs, and that DATABASE_URL or --database-url is right.',
    { cause },
  );
}

/** Several addresses of one name fail together, and what they have in common has no text. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join(', ');
  return error instanceof Error ? error.message : String(error);
}

function queryable(pool: pg.Pool): Queryable {
  return {
    query: async <Row>(text: string, parameters?: readonly unknown[]) => {
      const client = await connect(pool);
      return withClient(client, () => runOn<Row>(client, text, parameters));
    },
    run: async (script) => {
      const client = await connect(pool);
      await withClient(client, () => client.query(script));
    },
  };
}

function orderedIn(pool: pg.Pool): Pick<Queryable, 'query'> {
  const statements = new OrderedStatements({
    connect: () => pool.connect(),
    mayOverlap: (client) => ownConnections.has(client),
    isBroken: isAway,
  });
  return {
    query: async <Row>(text: string, parameters?: readonly unknown[]) => {
      try {
        return await statements.run((client) => runOn<Row>(client, text, parameters));
      } catch (error) {
        throw translate(error);
      }
    },
  };
}

function createPool(
  options: PgDatabaseOptions,
  clock: DatabaseClock,
  max: number,
  { isHot = false, pipeline = false } = {},
): pg.Pool {
  const pool = new pg.Pool({
    ...(pipeline ? { pipeline } : {}),
    // Who comes after a quiet while finds its statements prepared.
    min: isHot ? 1 : 0,
    connectionString: options.url,
    max,
    application_name: 'sluice',
    connectionTimeoutMillis: 10_000,
    // A new connection finds the new primary after a failover, and measures the clock again.
    maxLifetimeSeconds: 600,
    types: { getTypeParser },
    verify: (client, done) => {
      // Without a listener, a connection that breaks in the middle of a transaction ends the process.
      client.on('error', (error: Error) => options.onError?.(error));
      prepareConnection(client, clock, isHot).then(() => done(), done);
    },
  });
  // Told by the connection's own listener already; without one here it would be thrown.
  pool.on('error', () => undefined);
  return pool;
}

/** Those that nobody shares with us: what is prepared there is still there at the next call. */
const ownConnections = new WeakSet<pg.PoolClient>();

/** A pooler such as PgBouncer names itself when we connect, and Postgres when it is asked. */
async function prepareConnection(
  client: pg.PoolClient,
  clock: DatabaseClock,
  isHot: boolean,
): Promise<void> {
  const sentAtMs = clock.localMs();
  const { rows } = await client.query<{ now_ms: number; pid: number }>(setUp);
  clock.measured(rows[0]?.now_ms ?? NaN, sentAtMs);
  if (!('processID' in client) || client.processID !== rows[0]?.pid) return;
  ownConnections.add(client);
  if (isHot) await client.query(planOnce);
}

async function runOn<Row>(
  client: pg.PoolClient,
  text: string,
  parameters: readonly unknown[] | undefined,
): Promise<Row[]> {
  const values = parameters as unknown[] | undefined;
  const name = ownConnections.has(client) ? preparedName(text) : undefined;
  const { rows } =
    name === undefined || values === undefined
      ? await client.query(text, values)
      : await client.query({ name, text, values });
  return rows as Row[];
}

async function inTransaction<T>(
  client: pg.PoolClient,
  work: (connection: Queryable) => Promise<T>,
): Promise<T> {
  await client.query('begin');
  try {
    const result = await work({
      query: (text, parameters) => runOn(client, text, parameters),
      run: async (script) => {
        await client.query(script);
      },
    });
    await client.query('commit');
    return result;
  } catch (error) {
    if (!isAway(error)) await client.query('rollback');
    throw error;
  }
}

async function connect(pool: pg.Pool): Promise<pg.PoolClient> {
  try {
    return await pool.connect();
  } catch (error) {
    throw translate(error);
  }
}

/** Gives the connection back, or away when it is broken. */
async function withClient<T>(client: pg.PoolClient, work: () => Promise<T>): Promise<T> {
  try {
    const result = await work();
    client.release();
    return result;
  } catch (error) {
    client.release(isAway(error));
    throw translate(error);
  }
}

function translate(thrown: unknown): unknown {
  const error = withoutValues(thrown);
  if (isAway(error)) return new DatabaseAwayError('Postgres is away', { cause: error });
  if (lockedCodes.has(codeOf(error))) return new LockedError('A row is locked', { cause: error });
  return error;
}

/** Lock timeout, deadlock, serialization failure. */
const lockedCodes: ReadonlySet<string> = new Set(['55P03', '40P01', '40001']);

const awayCodes: ReadonlySet<string> = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT'],
  ...['EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN', 'ENOENT'],
  // Shutting down, crashed, starting up; too many connections; a statement that took too long;
  // the server we are connected to became a replica.
  ...['57P01', '57P02', '57P03', '53300', '57014', '25006', '25P03'],
]);

/** What the driver says without a code. */
const awayMessages =
  /^Connection terminated|^timeout exceeded when trying to connect|connection error and is not queryable|^Client was closed/;

function isAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof DatabaseAwayError) return true;
  const code = codeOf(error);
  const isKnown = awayCodes.has(code) || code.startsWith('08');
  return isKnown || isOutdated(error) || awayMessages.test(error.message);
}

/**
 * A newer server's migration changed what a prepared statement answers: it did not run, and never will
 * on this connection. The code says only "not supported", and the message is translated.
 */
function isOutdated(error: Error): boolean {
  return 'routine' in error && error.routine === 'RevalidateCachedQuery';
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : '';
}

/** As PGlite parses: a bigint is a number. Ours are sequences and versions, far below 2^53. */
const getTypeParser: typeof pg.types.getTypeParser = (oid, format) =>
  oid === pg.types.builtins.INT8
    ? Number
    : (pg.types.getTypeParser(oid, format) as (text: string) => unknown);
