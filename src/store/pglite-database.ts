import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { PGlite, type PGliteOptions } from '@electric-sql/pglite';

import { lockDataFolder } from './data-folder-lock.js';
import { sessionSettings, type Database, type Queryable } from './database.js';

export interface PgliteDatabaseOptions {
  /** Absent: in memory. */
  readonly dataDir?: string;
  /** In memory only: a dump of another one to start from, four times faster than from nothing. */
  readonly restoreFrom?: Blob;
}

const setUp = Object.entries(sessionSettings)
  .map(([name, value]) => `set ${name} = ${value};`)
  .join('\n');

/** Embedded Postgres. It has one connection, so calls run one after the other. */
export async function openPgliteDatabase(options: PgliteDatabaseOptions): Promise<Database> {
  const { dataDir, restoreFrom } = options;
  if (dataDir === undefined) {
    return open(restoreFrom === undefined ? {} : { loadDataDir: restoreFrom }, () => undefined);
  }
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const unlock = lockDataFolder(dataDir);
  try {
    // A folder of its own: initdb wants it empty, and the lock lies beside it.
    return await open({ dataDir: join(dataDir, 'postgres') }, unlock);
  } catch (error) {
    unlock();
    throw error;
  }
}

async function open(options: PGliteOptions, unlock: () => void): Promise<Database> {
  const lite = await PGlite.create(options);
  await lite.exec(setUp);
  return {
    ...queryable(lite),
    transaction: (work) => lite.transaction((transaction) => work(queryable(transaction))),
    // The same process, the same clock.
    nowMs: () => Date.now(),
    close: async () => {
      if (!lite.closed) await lite.close();
      unlock();
    },
  };
}

function queryable(connection: Pick<PGlite, 'query' | 'exec'>): Queryable {
  return {
    query: async <Row>(text: string, parameters?: readonly unknown[]) =>
      (await connection.query<Row>(text, parameters as unknown[] | undefined)).rows,
    run: async (script) => {
      await connection.exec(script);
    },
  };
}
