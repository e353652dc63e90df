import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';

import { openEngine, type Engine } from '../../src/engine/open-engine.js';
import { createEmptyDatabase, type TestDatabase } from '../support/postgres.js';
import { createTestRole, type TestRole } from '../support/roles.js';
import { startPgBouncer } from '../support/services/pgbouncer.js';
import { runOn } from '../support/services/postgres-statement.js';
import { quickTicks, submitAll, TestWorker } from './support.js';

/** Each of these broke something: lists, days, limits, arrays of null, or the plans. */
const badSettings = {
  DateStyle: `'SQL, DMY'`,
  IntervalStyle: 'iso_8601',
  TimeZone: `'Asia/Kolkata'`,
  extra_float_digits: '-15',
  bytea_output: 'escape',
  array_nulls: 'off',
  standard_conforming_strings: 'off',
  client_encoding: 'LATIN1',
  search_path: 'nowhere',
  statement_timeout: `'30ms'`,
  idle_session_timeout: `'5s'`,
  enable_indexscan: 'off',
  enable_nestloop: 'off',
};

describe('R-ST2: a role whose settings are all wrong, and that owns nothing but the schema', () => {
  let database: TestDatabase;
  let role: TestRole;
  beforeAll(async () => {
    database = await createEmptyDatabase();
    role = await createTestRole(database.url);
    await runOn(database.url, `create schema sluice authorization ${role.name}`);
    await role.set(badSettings);
  });
  afterAll(async () => {
    await role.drop();
    await database.drop();
  });

  it('straight to Postgres: a task is submitted, listed, fails, is listed again and completes', async () => {
    await liveThrough(await open(role.url), 'direct');
  });

  it('behind PgBouncer in transaction mode: the same', async () => {
    const pooler = await startPgBouncer(role.url, { poolMode: 'transaction', poolSize: 5 });
    onTestFinished(() => pooler.stop());
    await liveThrough(await open(pooler.url), 'pooled');
  });

  async function open(url: string): Promise<Engine> {
    const settings = { ...quickTicks, leaseMs: 600_000 };
    const engine = await openEngine({ database: { kind: 'postgres', url }, settings });
    onTestFinished(() => engine.close());
    return engine;
  }
});

async function liveThrough(engine: Engine, queue: string): Promise<void> {
  const beganAt = Date.now();
  const parameters = { text: 'ü 火 🌊 a\\b', number: 0.1 + 0.2 };
  const draft = { taskType: 'try', queue, parameters, maxRetries: 0 };
  await submitAll(engine, Array<typeof draft>(20).fill(draft));
  const waiting = await engine.listTasks({ queue }, { limit: 100 });
  expect(waiting.items).toHaveLength(20);
  for (const { createdAt } of waiting.items) {
    expect(Math.abs(createdAt.getTime() - beganAt)).toBeLessThan(60_000);
  }
  const worker = await TestWorker.register(engine, { queues: [queue] });
  const taken = await worker.take(20);
  expect(taken.map((task) => task.parameters)).toEqual(taken.map(() => parameters));
  const [first, ...others] = taken;
  if (first === undefined) throw new Error('nothing was taken');
  await worker.fail(first, { code: 'ODD', message: 'ü 火' });
  await Promise.all(others.map((task) => worker.complete(task, parameters)));
  const failed = await engine.getTask(first.taskId, { history: true });
  expect(failed).toMatchObject({ status: 'dead_letter', error: { code: 'ODD', message: 'ü 火' } });
  expect(failed.history?.attempts).toHaveLength(1);
  const completed = await engine.listTasks({ queue, status: 'completed' }, { limit: 100 });
  expect(completed.items).toHaveLength(19);
}
