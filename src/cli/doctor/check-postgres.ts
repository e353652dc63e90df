import { hidePassword } from '../../runtime/hide-password.js';
import { silentLog } from '../../runtime/log.js';
import type { Database } from '../../store/database.js';
import type { Pooling } from '../../store/pooling.js';
import { failed, ok, warning, type Check } from './check.js';

const leastVersion = 15;
const tolerableSkewMs = 1_000;
/** A leader renews its lease every two seconds. */
const longestSilenceMs = 10_000;

export async function checkPostgres(url: string): Promise<readonly Check[]> {
  const { openDatabase } = await import('../../engine/open-engine.js');
  let db: Database;
  try {
    db = await openDatabase({ kind: 'postgres', url, poolSize: 1 }, silentLog);
  } catch (error) {
    return [unusable(url, error)];
  }
  try {
    return [
      ok('Postgres', hidePassword(url)),
      await checkVersion(db),
      ...(await checkFacts(db)),
      await checkPooling(url),
      await checkRights(db),
      await checkSchema(db),
      await checkClock(db),
      ...(await checkLeader(db)),
    ];
  } finally {
    await db.close();
  }
}

/** What opening refuses is said with its remedy, which is the advice. */
function unusable(url: string, error: unknown): Check {
  if (error instanceof Error && error.name === 'DatabaseUnfitError') {
    const [found = '', ...advice] = error.message.split('\n');
    return failed('Postgres', found, advice.join('\n'));
  }
  const advice = 'Check the address, the password and that Postgres runs.';
  return failed('Postgres', `${hidePassword(url)}: ${reason(error)}`, advice);
}

/** Opening has refused any other encoding, and a server or a role that may only read. */
async function checkFacts(db: Database): Promise<readonly Check[]> {
  const { readFacts } = await import('../../store/database-fitness.js');
  const { encoding, role, synchronousCommit } = await readFacts(db);
  const durability = 'Accepted tasks may be lost when the server crashes; set it to on.';
  return [
    ok('encoding', encoding),
    ok('writes', `accepted, as "${role}"`),
    synchronousCommit === 'off'
      ? warning('durability', 'synchronous_commit is off', durability)
      : ok('durability', `synchronous_commit is ${synchronousCommit}`),
  ];
}

/** Without Redis one process leads the others. */
async function checkLeader(db: Database): Promise<readonly Check[]> {
  const { latestVersion, schemaVersion } = await import('../../store/migrate.js');
  const { findRightsProblem } = await import('../../store/database-rights.js');
  if ((await findRightsProblem(db, 'read')) !== null) return [];
  // An older schema does not say since when.
  if ((await schemaVersion(db)) !== latestVersion) return [];
  return [await judgeLeader(db)];
}

async function judgeLeader(db: Database): Promise<Check> {
  const { findLeader } = await import('../../store/leader.js');
  const leader = await findLeader(db);
  if (leader === null) return ok('leader', 'none: no process serves this database now');
  if (leader.mode === 'redis') return ok('leader', 'none: servers share a ready queue in Redis');
  const silentMs = Date.now() - leader.renewedAt.getTime();
  const found = `${leader.holder} since ${leader.since.toISOString()}`;
  if (silentMs < longestSilenceMs) return ok('leader', found);
  const advice = 'If a process runs on this database, see its log. Else the next one leads.';
  return warning('leader', `${found}, silent for ${Math.round(silentMs / 1000)} s`, advice);
}

async function checkPooling(url: string): Promise<Check> {
  const { findPooling } = await import('../../store/pooling.js');
  let pooling: Pooling;
  try {
    pooling = await findPooling(url);
  } catch (error) {
    const advice =
      'A server opens up to 26 connections: raise max_connections, the connection limit of the role ' +
      'or of the database, or the size of the pool.';
    return warning('pooling', `two more connections can't be opened: ${reason(error)}`, advice);
  }
  switch (pooling) {
    case 'none':
      return ok('pooling', 'none: connections go to Postgres itself');
    case 'transaction':
      return ok(
        'pooling',
        'by transaction: settings travel with each statement, and without Redis mail between processes is polled for',
      );
    case 'session':
      return ok('pooling', 'by session, or nobody shared a connection just now');
  }
}

async function checkRights(db: Database): Promise<Check> {
  const { findRightsProblem } = await import('../../store/database-rights.js');
  const problem = await findRightsProblem(db, 'change');
  if (problem === null) return ok('rights', 'all that is needed');
  const [found = '', ...advice] = problem.split('\n');
  return failed('rights', found, advice.join('\n'));
}

async function checkVersion(db: Database): Promise<Check> {
  const [row] = await db.query<{ number: number }>(
    `select current_setting('server_version_num')::int as number`,
  );
  const major = Math.floor((row?.number ?? 0) / 10_000);
  return major >= leastVersion
    ? ok('Postgres version', String(major))
    : failed('Postgres version', String(major), `Upgrade to ${leastVersion} or later.`);
}

async function checkSchema(db: Database): Promise<Check> {
  const { latestVersion, schemaVersion } = await import('../../store/migrate.js');
  const { findRightsProblem } = await import('../../store/database-rights.js');
  if ((await findRightsProblem(db, 'read')) !== null) {
    return failed('schema', "can't be read", 'Give the role the rights that are missing.');
  }
  const version = await schemaVersion(db);
  if (version === latestVersion) return ok('schema', `version ${version}, up to date`);
  if (version > latestVersion) {
    const found = `version ${version}, made by a newer Sluice than this one (${latestVersion})`;
    return warning('schema', found, 'Upgrade this one.');
  }
  const found = version === 0 ? 'not there yet' : `version ${version} of ${latestVersion}`;
  return warning('schema', found, 'Run "sluice migrate", or start "sluice serve".');
}

/** Decisions go by the database's clock; a skew only confuses whoever compares logs. */
async function checkClock(db: Database): Promise<Check> {
  const sentAt = Date.now();
  const [row] = await db.query<{ now_ms: number }>(
    `select date_part('epoch', clock_timestamp()) * 1000 as now_ms`,
  );
  const skewMs = Math.round((row?.now_ms ?? NaN) - (sentAt + Date.now()) / 2);
  return Math.abs(skewMs) <= tolerableSkewMs
    ? ok('clock skew', `${skewMs} ms`)
    : warning('clock skew', `${skewMs} ms`, 'Set both clocks by NTP: times in logs will differ.');
}

/** A refused connection to two addresses is an AggregateError without a message. */
function reason(error: unknown): string {
  const { message, cause } = error as Error;
  if (cause instanceof AggregateError) return cause.errors.map(reason).join('; ');
  return cause instanceof Error && cause.message !== '' ? cause.message : message;
}
