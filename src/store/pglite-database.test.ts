import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { newTask, rowOf } from '../../test/store/lifecycle.js';
import { freshPglite } from '../../test/support/pglite.js';
import { until } from '../../test/support/until.js';
import { DataFolderInUseError } from './data-folder-lock.js';
import { findInstallationId } from './installation.js';
import { latestVersion, migrate } from './migrate.js';
import { ensurePartitions } from './partitions.js';
import { openPgliteDatabase } from './pglite-database.js';
import { submitTasks } from './submit-tasks.js';

describe('openPgliteDatabase with a folder', () => {
  let parent: string;
  let dataDir: string;

  beforeAll(() => {
    parent = mkdtempSync(join(tmpdir(), 'sluice-data-'));
    dataDir = join(parent, 'made', 'here');
  });
  afterAll(() => rmSync(parent, { recursive: true }));

  it('R-ST1: keeps what was written, lets one in at a time, and is for its owner only', async () => {
    const task = newTask();
    const first = await openPgliteDatabase({ ...freshPglite('store'), dataDir });
    await ensurePartitions(first, 1, null);
    await submitTasks(first, [task], null);
    expect(statSync(dataDir).mode & 0o077).toBe(0);
    await expect(openPgliteDatabase({ dataDir })).rejects.toBeInstanceOf(DataFolderInUseError);
    await first.close();
    await first.close();

    const second = await openPgliteDatabase({ dataDir });
    expect(await migrate(second)).toEqual({ from: latestVersion, to: latestVersion });
    expect(await rowOf(second, task.taskId)).toMatchObject({ status: 'queued' });
    await second.close();
  });

  it('replaces what a process left that died while it made the folder', async () => {
    const interrupted = join(parent, 'interrupted');
    const draft = join(interrupted, 'postgres.new');
    mkdirSync(draft, { recursive: true });
    writeFileSync(join(draft, 'PG_VERSION'), '1');
    const db = await openPgliteDatabase({ ...freshPglite('store'), dataDir: interrupted });
    expect(await migrate(db)).toEqual({ from: latestVersion, to: latestVersion });
    expect(existsSync(draft)).toBe(false);
    await db.close();
  });
});

describe('the WAL of embedded Postgres', () => {
  it('is cut by checkpoints while the database is in use', async () => {
    const db = await openPgliteDatabase({ ...freshPglite('store'), checkpointAfterBytes: 100_000 });
    const begin = () =>
      db.query<{ redo_lsn: string }>('select redo_lsn::text from pg_control_checkpoint()');
    const first = await begin();
    await db.run('create table filler (text text)');
    await db.query(`insert into filler select repeat('x', 1000) from generate_series(1, 500)`);
    await until('a checkpoint', async () => (await begin())[0]?.redo_lsn !== first[0]?.redo_lsn, {
      everyMs: 1,
    });
    await db.close();
  });
});

describe('a new embedded database', () => {
  it('is a copy of an image with nothing random in it, and gets an id of its own', async () => {
    const ids = new Set<string>();
    for (let copy = 0; copy < 2; copy += 1) {
      const db = await openPgliteDatabase(freshPglite('store'));
      const tables = await db.query<{ name: string }>(
        `select oid::regclass::text as name from pg_class
         where relnamespace = 'sluice'::regnamespace and relkind = 'r' and not relispartition`,
      );
      for (const { name } of tables) {
        const rows = await db.query<{ row: string }>(
          `select to_json(t)::text as row from ${name} t`,
        );
        expect(rows.filter(({ row }) => /[0-9a-f]{8}-[0-9a-f]{4}-/.test(row))).toEqual([]);
      }
      ids.add(await findInstallationId(db));
      ids.add(await findInstallationId(db));
      await db.close();
    }
    expect(ids.size).toBe(2);
  });
});
