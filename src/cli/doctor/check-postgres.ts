import { hidePassword } from '../../runtime/hide-password.js';
import { silentLog } from '../../runtime/log.js';
import type { Database } from '../../store/database.js';
import { failed, ok, warning, type Check } from './check.js';

const leastVersion = 15;
const tolerableSkewMs = 1_000;

export async function checkPostgres(url: string): Promise<readonly Check[]> {
  const { openDatabase } = await import('../../engine/open-engine.js');
  let db: Database;
  try {
    db = await openDatabase({ kind: 'postgres', url, poolSize: 1 }, silentLog);
  } catch (error) {
    const advice = 'Check the address, the password and that Postgres runs.';
    return [failed('Postgres', `${hidePassword(url)}: ${reason(error)}`, advice)];
  }
  try {
    return [
      ok('Postgres', hidePassword(url)),
      await checkVersion(db),
      await checkSchema(db),
      await checkClock(db),
    ];
  } finally {
    await db.close();
  }
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
