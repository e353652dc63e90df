import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

import { LockedError, type Database, type Queryable } from './database.js';
import { checkRights, hasSchema } from './database-rights.js';

export interface Migration {
  readonly version: number;
  readonly script: string;
}

const folder = new URL('./migrations/', import.meta.url);

/** Append-only: a number once released never changes its meaning. */
export const migrations: readonly Migration[] = readdirSync(folder)
  .filter((name) => name.endsWith('.sql'))
  .map((name) => ({
    version: Number.parseInt(name, 10),
    script: readFileSync(new URL(name, folder), 'utf8'),
  }))
  .sort((one, other) => one.version - other.version);

/** The version that this code needs. */
export const latestVersion = migrations.at(-1)?.version ?? 0;

/** Others queue behind a lock that waits: shorter than the lock_timeout of any statement. */
const lockTimeout = '50ms';
const lockedRetryMs = 200;

/** Brings the schema to the latest version; leaves a newer one alone. */
export async function migrate(
  db: Database,
  all: readonly Migration[] = migrations,
): Promise<{ from: number; to: number }> {
  await checkRights(db, 'read');
  const from = await schemaVersion(db);
  if (from < (all.at(-1)?.version ?? 0)) await checkRights(db, 'change');
  let to = from;
  for (const migration of all) {
    if (migration.version > from) to = await applyUnlessLocked(db, migration);
  }
  return { from, to };
}

/** Servers of the version before go on, and a transaction of a user may stay open for an hour. */
async function applyUnlessLocked(db: Database, migration: Migration): Promise<number> {
  for (;;) {
    try {
      return await db.transaction((tx) => apply(tx, migration));
    } catch (error) {
      if (!(error instanceof LockedError)) throw error;
      await delay(lockedRetryMs);
    }
  }
}

/** 0: nothing is there. */
export async function schemaVersion(db: Queryable): Promise<number> {
  // Not to_regclass: inside a transaction it goes on saying "not there" after another made it.
  const [found] = await db.query<{ there: boolean }>(
    `select exists (
       select from pg_catalog.pg_tables where schemaname = 'sluice' and tablename = 'migrations'
     ) as there`,
  );
  if (found?.there !== true) return 0;
  const [latest] = await db.query<{ version: number }>(
    'select coalesce(max(version), 0) as version from sluice.migrations',
  );
  return latest?.version ?? 0;
}

async function apply(tx: Queryable, { version, script }: Migration): Promise<number> {
  // Another server may be migrating: wait for it as long as it takes, then find its work done.
  await tx.run('set local lock_timeout = 0; set local statement_timeout = 0;');
  await tx.query('select pg_advisory_xact_lock(7378697629)');
  const reached = await schemaVersion(tx);
  if (reached >= version) return reached;
  // "create schema if not exists" needs the right to create one also when it is there.
  if (!(await hasSchema(tx))) await tx.run('create schema sluice');
  await tx.run(`
    set local lock_timeout = '${lockTimeout}';
    create table if not exists sluice.migrations (
      version integer primary key,
      applied_at timestamptz not null default now()
    );
  `);
  await tx.run(script);
  await tx.query('insert into sluice.migrations (version) values ($1)', [version]);
  return version;
}
