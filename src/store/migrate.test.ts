import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { createTestDatabase, type TestDatabase } from '../../test/support/postgres.js';
import type { Database } from './database.js';
import { latestVersion, migrate, schemaVersion } from './migrate.js';
import { openPgDatabase } from './pg-database.js';
import { openPgliteDatabase } from './pglite-database.js';

describe('migrate', () => {
  it('R-ST2: brings an empty PGlite to the latest version, once', async () => {
    const db = await openPgliteDatabase({});
    try {
      await bringsToLatest(db);
    } finally {
      await db.close();
    }
  });

  describe('on Postgres', () => {
    let database: TestDatabase;
    let pools: Database[];

    beforeAll(async () => {
      database = await createTestDatabase();
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
});

async function bringsToLatest(db: Database): Promise<void> {
  expect(await schemaVersion(db)).toBe(0);
  expect(await migrate(db)).toEqual({ from: 0, to: latestVersion });
  expect(await schemaVersion(db)).toBe(latestVersion);
  expect(await migrate(db)).toEqual({ from: latestVersion, to: latestVersion });
}
