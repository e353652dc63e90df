import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { makeEnded } from '../../bench/ended-tasks.js';
import { claimTasks } from '../../src/store/claim-tasks.js';
import type { Database } from '../../src/store/database.js';
import { endAttempts } from '../../src/store/end-attempts.js';
import { completeTasks } from '../../src/store/finish-tasks.js';
import { migrate } from '../../src/store/migrate.js';
import { dropHistory, dropInputs, ensurePartitions } from '../../src/store/partitions.js';
import { openPgDatabase } from '../../src/store/pg-database.js';
import { findPurgeable, giveUpWorkflow, purgeEnded } from '../../src/store/purge-ended.js';
import { purgeWorkflows } from '../../src/store/purge-workflows.js';
import { submitTasks } from '../../src/store/submit-tasks.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { explained } from './explained.js';
import { claimOf, completionOf, newTasks, toDeadLetter } from './lifecycle.js';
import { atSecond, seedTask, zero } from './seed.js';

const ended = 30_000;
const days = 6;
const batch = 200;
/** Of the 10,000 pages and more that ended tasks fill. */
const little = 600;

describe('R-ST6: beside days of ended tasks', () => {
  let database: TestDatabase;
  let db: Database;

  beforeAll(async () => {
    database = await createTestDatabase('store');
    db = await openPgDatabase({ url: database.url });
    await migrate(db);
    await ensurePartitions(db, 2, null);
    const client = new Client({ connectionString: database.url });
    await client.connect();
    await makeEnded(client, ended, days).finally(() => client.end());
  });
  afterAll(async () => {
    await db.close();
    await database.drop();
  });

  it.each(['for its parameters', 'for any parameters'] as const)(
    'submit, claim, finish and fail look into no day before today, planned %s',
    async (made) => {
      const { db: watched, plans } = explained(db, made);
      const tasks = newTasks(2 * batch);
      await submitTasks(watched, tasks, null);
      const claims = tasks.map((task) => claimOf(task.taskId));
      const held = await claimTasks(watched, claims, 0, 30_000, null);
      await completeTasks(
        watched,
        held.slice(0, batch).map((one) => completionOf(one)),
        null,
      );
      await endAttempts(watched, held.slice(batch).map(toDeadLetter), null);
      expect(plans.length).toBeGreaterThanOrEqual(4);
      const looked = new Set(plans.flatMap((plan) => plan.partitions));
      const [today] = await db.query<{ name: string }>(
        `select 'task_inputs_' || to_char(now() at time zone 'UTC', 'YYYYMMDD') as name`,
      );
      expect([...looked]).toEqual([today?.name]);
      for (const plan of plans) expect(plan.faults, plan.statement).toEqual([]);
    },
  );

  it('what is to be purged is found by its index', async () => {
    const old = { status: 'dead_letter', endedAt: atSecond(-40 * 86_400) } as const;
    for (let n = 0; n < 50; n += 1) await seedTask(db, old);
    await seedTask(db, { ...old, workflowId: 'w' });
    const behind = { status: 'pending', waitsFor: 'workflow', workflowId: 'w' } as const;
    for (let n = 0; n < 50; n += 1) await seedTask(db, behind);
    const kept = { failed: 7, deadLetter: 30 };
    const { db: watched, plans } = explained(db);
    const { ordinary, halting } = await findPurgeable(watched, kept, 100, zero);
    const byIndex = 'Index Scan on tasks by tasks_purgeable';
    expect(plans[0]?.scans).toEqual([byIndex, byIndex]);
    expect(await purgeEnded(watched, ordinary, kept, zero)).toBe(50);
    for (const row of halting) {
      const given = await giveUpWorkflow(watched, row, kept, 100, zero);
      expect(given.cancelled).toHaveLength(50);
    }
    expect(await purgeWorkflows(watched, null, 100)).toMatchObject({ purged: 1 });
    for (const plan of plans) {
      expect(plan.faults, plan.statement).toEqual([]);
      expect(plan.pages, plan.scans.join('\n')).toBeLessThan(little);
    }
  });

  it('which days may go is found without reading them', async () => {
    // Days without a task.
    await dropInputs(db, 10, null);
    const { db: watched, plans } = explained(db);
    expect(await dropHistory(watched, 30, 10, null)).toEqual([]);
    expect(await dropInputs(watched, 10, null)).toEqual([]);
    for (const plan of plans) expect(plan.pages, plan.scans.join('\n')).toBeLessThan(little);
  });
});
