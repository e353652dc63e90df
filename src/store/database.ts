import type { Outage } from '../runtime/log.js';

/** One statement and its parameters, on a connection of its own or inside a transaction. */
export interface Queryable {
  query<Row>(text: string, parameters?: readonly unknown[]): Promise<Row[]>;
  /** Several statements without parameters: a migration. */
  run(script: string): Promise<void>;
}

/** Postgres, as a server (`pg-database`) or embedded (`pglite-database`): the same SQL runs on both. */
export interface Database extends Queryable {
  /** `work` must use the connection it is given: on PGlite, the database itself would wait for ever. */
  transaction<T>(work: (connection: Queryable) => Promise<T>): Promise<T>;
  /** Connections kept for what keeps leases alive: heartbeats. */
  readonly vital: Queryable;
  /** For what people look at: few at a time, and each is stopped after five seconds (`SlowReadError`). */
  readonly reads: Queryable;
  /** A connection kept for what must not wait behind others: the turn to serve. */
  readonly urgent: Queryable;
  /** Statements that are done in the order in which they are asked for, each by itself. */
  readonly ordered: Pick<Queryable, 'query'>;
  /** No other process can use it: it is embedded, and its folder is locked. */
  readonly isExclusive: boolean;
  /** The database's clock in milliseconds, as last measured: for ids, never for decisions. */
  nowMs(): number;
  close(): Promise<void>;
}

/** The instant a statement takes as now; null is the database's own clock. Tests pass one. */
export type Instant = Date | null;

/**
 * An outage: the database can't be reached, went away in the middle, or can't write now. Whether a write happened
 * is unknown.
 */
export class DatabaseAwayError extends Error implements Outage {
  override readonly name = 'DatabaseAwayError';
  readonly isOutage = true;
}

/** The database answers, but can't be used as it is set up. The message says what to change. */
export class DatabaseUnfitError extends Error {
  override readonly name = 'DatabaseUnfitError';
}

/** A read took longer than people's reads may, or too many of them wait. */
export class SlowReadError extends Error {
  override readonly name = 'SlowReadError';
}

/** Somebody else holds a lock for longer than a batch may wait. Nothing was written; try again. */
export class LockedError extends Error implements Outage {
  override readonly name = 'LockedError';
  readonly isOutage = true;
}

/**
 * A day has no partition, and none could be made now. Nothing was written; it is the same for every
 * task of that day.
 */
export class NoPartitionError extends Error {
  override readonly name = 'NoPartitionError';
}

/**
 * For every connection. Without fresh statistics the planner joins a batch to the tasks by a hash
 * over a sequential scan: 2,000 rows a second instead of 130,000. Every statement here has an
 * index to use, so the other ways are switched off.
 */
export const sessionSettings: Readonly<Record<string, string>> = {
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  // It would remember rows by a key that never comes twice.
  enable_memoize: 'off',
  // Compiling a statement costs more than any of them runs.
  jit: 'off',
};

const oftenAsked = new Map<string, string>();

/**
 * A statement of the hot path. Where a connection stays with us, it is parsed and planned once for each
 * connection instead of at every call. Only for texts that are written once, here in the code.
 */
export function prepared(text: string): string {
  if (!oftenAsked.has(text)) oftenAsked.set(text, `sluice_${oftenAsked.size + 1}`);
  return text;
}

/** Undefined: it is not asked often enough for a connection to keep it. */
export function preparedName(text: string): string | undefined {
  return oftenAsked.get(text);
}
