import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { newTask, rowOf } from '../../test/store/lifecycle.js';
import { DataFolderInUseError } from './data-folder-lock.js';
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
    const first = await openPgliteDatabase({ dataDir });
    await migrate(first);
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
});
