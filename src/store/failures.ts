import { DatabaseAwayError, LockedError } from './database.js';
import { withoutValues } from './without-values.js';

/**
 * What an error of Postgres means for the caller, on a server and embedded: an outage, a lock, or a bug. Our sentence
 * names the cause; what Postgres said may hold hosts and users, and stays in `cause`.
 */
export function translate(thrown: unknown): unknown {
  const error = withoutValues(thrown);
  if (error instanceof DatabaseAwayError || error instanceof LockedError) return error;
  const outage = outageOf(error);
  if (outage !== null) return new DatabaseAwayError(outage, { cause: error });
  const code = codeOf(error);
  if (lockedCodes.has(code)) {
    return new LockedError('Somebody else holds a lock on a row or a table', { cause: error });
  }
  if (lostStatementCodes.has(code)) {
    return new LockedError('The transaction lost a prepared statement', { cause: error });
  }
  return error;
}

/** The connection can't be used any more, or another one may find the new primary. */
export function isBroken(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof DatabaseAwayError) return isBroken(error.cause);
  const code = codeOf(error);
  if (code.startsWith('08') || networkCodes.has(code) || brokenCodes.has(code)) return true;
  return isOutdated(error) || brokenMessages.test(error.message);
}

/**
 * The statement did not run: Postgres does not know the name of a prepared statement, or knows it already. Its
 * Parse failed, or somebody said `deallocate all`.
 */
export function isLostStatement(error: unknown): boolean {
  return lostStatementCodes.has(codeOf(error));
}

export const unknownStatement = '26000';
export const knownStatement = '42P05';
const lostStatementCodes: ReadonlySet<string> = new Set([unknownStatement, knownStatement]);

/** Lock timeout, deadlock, serialization failure. */
const lockedCodes: ReadonlySet<string> = new Set(['55P03', '40P01', '40001']);

const networkCodes: ReadonlySet<string> = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT'],
  ...['EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN', 'ENOENT'],
]);

/** Postgres ends the session with these, or the server became a replica. */
const brokenCodes: ReadonlySet<string> = new Set([
  ...['57P01', '57P02', '57P03', '57P04', '57P05', '25P03', '25P04', '25006'],
]);

/** What the driver says without a code. */
const brokenMessages =
  /^Connection terminated|^timeout expired|^timeout exceeded when trying to connect|connection error and is not queryable|^Client was closed/;

/** All its connections were in use for too long: no host failed. */
export function isPoolFull(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('timeout exceeded when trying');
}

const readOnly = 'Postgres is read-only: it is a replica, or a failover is under way';

/** By code, else by the first two characters of it. */
const outages: Readonly<Record<string, string>> = {
  '25006': readOnly,
  '53100': 'Postgres has no disk space left',
  '53200': 'Postgres is out of memory',
  '53300': 'Postgres has no connection left',
  '53': 'Postgres is short of resources',
  '57014': 'A statement took longer than it may, or was cancelled',
  '57': 'Postgres is shutting down or starting',
  '58030': 'Postgres cannot read or write its files',
};

/** Null: it is none. */
function outageOf(error: unknown): string | null {
  const code = codeOf(error);
  const sentence = outages[code] ?? outages[code.slice(0, 2)];
  if (sentence !== undefined && code.length === sqlStateLength) return sentence;
  return isBroken(error) ? 'Postgres is away' : null;
}

const sqlStateLength = 5;

/**
 * A newer server's migration changed what a prepared statement answers: it did not run, and never will
 * on this connection. The code says only "not supported", and the message is translated.
 */
function isOutdated(error: Error): boolean {
  return 'routine' in error && error.routine === 'RevalidateCachedQuery';
}

export function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : '';
}
