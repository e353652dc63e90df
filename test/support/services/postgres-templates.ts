import { randomBytes } from 'node:crypto';
import { migrate } from '../../../src/store/migrate.js';
import { ensurePartitions } from '../../../src/store/partitions.js';
import { openPgDatabase } from '../../../src/store/pg-database.js';
import { inDatabase, runOn } from './postgres-statement.js';
import { daysAhead, type Prepared } from './prepared-days.js';

export type PostgresTemplates = Readonly<Record<Prepared, string>>;

/** Databases with the schema and its partitions: a copy takes a tenth of what migrating takes. */
export async function preparePostgres(
  serverUrl: string,
): Promise<{ readonly names: PostgresTemplates; remove(): Promise<void> }> {
  const names = { store: newName('store'), engine: newName('engine') };
  await runOn(serverUrl, `create database ${names.store}`);
  await prepare(inDatabase(serverUrl, names.store), daysAhead.store);
  await runOn(serverUrl, `create database ${names.engine} template ${names.store}`);
  await prepare(inDatabase(serverUrl, names.engine), daysAhead.engine);
  return {
    names,
    remove: async () => {
      for (const name of Object.values(names)) {
        await runOn(serverUrl, `drop database ${name} with (force)`);
      }
    },
  };
}

function newName(prepared: Prepared): string {
  return `test_template_${prepared}_${randomBytes(4).toString('hex')}`;
}

async function prepare(url: string, days: number): Promise<void> {
  const db = await openPgDatabase({ url });
  try {
    await migrate(db);
    await ensurePartitions(db, days, null);
  } finally {
    await db.close();
  }
}
