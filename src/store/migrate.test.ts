import { readFileSync } from 'node:fs';

import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { createEmptyDatabase, type TestDatabase } from '../../test/support/postgres.js';
import { until } from '../../test/support/until.js';
import type { Database } from './database.js';
import { saveImage } from './embedded/make-image.js';
import { findInstallationId } from './installation.js';
import { findLimitsChanged, putLimit } from './limits.js';
import { latestVersion, migrate, schemaVersion } from './migrate.js';
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

  describe('from the first version', () => {
    let database: TestDatabase;
    let db: Database;

    beforeAll(async () => {
      database = await createEmptyDatabase();
      db = await openPgDatabase({ url: database.url });
      await makeFirstVersion(db);
    });
    afterAll(async () => {
      await db.close();
      await database.drop();
    });

    it('R-ST8: limits that are there stay, and tasks that waited for room are in line', async () => {
      await db.query(
        `insert into sluice.tasks (id, queue, task_type, priority, status, waits_for, run_at,
           created_at, eligible_at, timeout_seconds, max_retries)
         select gen_random_uuid(), waits_for, 'chat', 1, 'pending', waits_for, now(), now(), now(), 60, 3
         from unnest(array['room', 'time', 'workflow']) as waits_for`,
      );
      await db.query(
        `insert into sluice.limits (name, version, unit, rate, per_seconds)
         values ('old', 41, 'requests', 5, 60), ('older', 3, 'requests', 5, 60)`,
      );
      expect(await migrate(db)).toEqual({ from: 1, to: latestVersion });
      const limit = { unit: 'requests', rate: 5, perSeconds: 60, burst: null };
      const found = await findLimitsChanged(db, new Date(Date.now() - 60_000));
      expect(found).toContainEqual({ name: 'old', version: 41, limit });
      expect((await putLimit(db, 'older', limit)).version).toBe(42);
      expect((await putLimit(db, 'new', limit)).version).toBe(43);
      const tasks = await db.query<{ queue: string; status: string; waits_for: string | null }>(
        'select queue, status, waits_for from sluice.tasks order by queue',
      );
      expect(tasks).toEqual([
        { queue: 'room', status: 'queued', waits_for: null },
        { queue: 'time', status: 'pending', waits_for: 'time' },
        { queue: 'workflow', status: 'pending', waits_for: 'workflow' },
      ]);
    });

    it('R-ST8: what a server of an earlier version puts aside for want of room is in line', async () => {
      const [inserted] = await db.query<{ id: string }>(
        `insert into sluice.tasks (id, queue, task_type, priority, status, waits_for, created_at,
           eligible_at, timeout_seconds, max_retries)
         values (gen_random_uuid(), 'late', 'chat', 1, 'pending', 'room', now(), now(), 60, 3)
         returning id`,
      );
      const line = () =>
        db.query('select status, waits_for, queued_at from sluice.tasks where id = $1', [
          inserted?.id,
        ]);
      const inLine = { status: 'queued', waits_for: null, queued_at: expect.any(Date) as Date };
      expect(await line()).toEqual([inLine]);
      await db.query(
        `update sluice.tasks set status = 'pending', waits_for = 'room', queued_at = null
         where queue = 'late'`,
      );
      expect(await line()).toEqual([inLine]);
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
      await makeFirstVersion(db);
      await somebody.connect();
      await somebody.query('begin; lock table sluice.tasks in row exclusive mode');
      const migrating = migrate(db);
      await until('it to wait', async () => (await server.query(waitingLocksSql)).length > 0);
      for (let time = 0; time < 100; time += 1) {
        await server.query('update sluice.tasks set queue = queue where false');
      }
      expect(await schemaVersion(server)).toBeLessThan(latestVersion);
      await somebody.query('commit');
      expect(await migrating).toEqual({ from: 1, to: latestVersion });
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

async function makeFirstVersion(db: Database): Promise<void> {
  await db.run(`
    create schema sluice;
    create table sluice.migrations (version integer primary key, applied_at timestamptz);
    insert into sluice.migrations values (1, now());
  `);
  await db.run(readFileSync(new URL('./migrations/0001-tasks.sql', import.meta.url), 'utf8'));
}

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
