import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { createEmptyDatabase, type TestDatabase } from '../../test/support/postgres.js';
import { until } from '../../test/support/until.js';
import type { Database } from './database.js';
import { saveImage } from './embedded/make-image.js';
import { findInstallationId } from './installation.js';
import { latestVersion, migrate, migrations, schemaVersion, type Migration } from './migrate.js';
import { openPgDatabase } from './pg-database.js';

describe('migrate', () => {
  it('R-ST2: brings an empty PGlite to the latest version, once', async () => {
    await saveImage(null, async (db) => {
      await bringsToLatest(db);
      await hasAnIdThatStays(db);
    });
  });

  describe('on Postgres', () => {
    let database: TestDatabase;
    let pools: Database[];

    beforeAll(async () => {
      database = await createEmptyDatabase();
      pools = await Promise.all(
        Array.from({ length: 4 }, () => openPgDatabase({ url: database.url })),
      );
    });
    afterAll(async () => {
      await Promise.all(pools.map((db) => db.close()));
      await database.drop();
    });

    it('R-ST8: servers that start at once migrate once', async () => {
      const results = await Promise.all(pools.map((db) => migrate(db)));
      expect(results.map((result) => result.to)).toEqual(pools.map(() => latestVersion));
      const [db] = pools;
      const applied = await db?.query('select version from sluice.migrations order by version');
      expect(applied).toEqual(
        Array.from({ length: latestVersion }, (_, n) => ({ version: n + 1 })),
      );
    });
  });

  it('R-ST8, R-ST7: one that waits for an open transaction lets all others go on', async () => {
    const database = await createEmptyDatabase();
    const [db, server] = await Promise.all([
      openPgDatabase({ url: database.url }),
      openPgDatabase({ url: database.url }),
    ]);
    const somebody = new Client({ connectionString: database.url });
    try {
      await migrate(db);
      await somebody.connect();
      await somebody.query('begin; lock table sluice.tasks in row exclusive mode');
      const migrating = migrate(db, [...migrations, later]);
      await until('it to wait', async () => (await server.query(waitingLocksSql)).length > 0);
      for (let time = 0; time < 100; time += 1) {
        await server.query('update sluice.tasks set queue = queue where false');
      }
      expect(await schemaVersion(server)).toBe(latestVersion);
      await somebody.query('commit');
      expect(await migrating).toEqual({ from: latestVersion, to: later.version });
    } finally {
      await somebody.end();
      await Promise.all([db.close(), server.close()]);
      await database.drop();
    }
  });
});

const waitingLocksSql = `
  select from pg_locks
  where relation = 'sluice.tasks'::regclass and not granted`;

/** Changes a table that every transaction uses, as a migration of a later version may. */
const later: Migration = {
  version: latestVersion + 1,
  script: 'alter table sluice.tasks add column later integer',
};

async function hasAnIdThatStays(db: Database): Promise<void> {
  const id = await findInstallationId(db);
  expect(id).toMatch(/^[0-9a-f-]{36}$/);
  await migrate(db);
  expect(await findInstallationId(db)).toBe(id);
}

async function bringsToLatest(db: Database): Promise<void> {
  expect(await schemaVersion(db)).toBe(0);
  expect(await migrate(db)).toEqual({ from: 0, to: latestVersion });
  expect(await schemaVersion(db)).toBe(latestVersion);
  expect(await migrate(db)).toEqual({ from: latestVersion, to: latestVersion });
}
