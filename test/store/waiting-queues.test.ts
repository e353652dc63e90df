import { afterAll, beforeAll, expect, it } from 'vitest';
import { WaitingQueues } from '../../src/engine/waiting-queues.js';
import type { Database } from '../../src/store/database.js';
import { migrate } from '../../src/store/migrate.js';
import { openPgDatabase } from '../../src/store/pg-database.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await createTestDatabase('store');
  db = await openPgDatabase({ url: database.url });
  await migrate(db);
  const queues = Array.from({ length: 20 }, (_, n) => `gpu-${String(n).padStart(2, '0')}`);
  await queue([...queues, 'gpu-', 'gpu', 'gpv', 'cpu-a', 'cpu-b', 'mail']);
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

/** Two queued tasks in each, and no row in sluice.queues. */
async function queue(names: readonly string[]): Promise<void> {
  await db.query(
    `insert into sluice.tasks
       (id, queue, task_type, priority, status, created_at, eligible_at, queued_at,
        timeout_seconds, max_retries)
     select gen_random_uuid(), name, 'chat', 1, 'queued', now(), now(), now(), 600, 3
     from unnest($1::text[]) as name, generate_series(1, 2)`,
    [names],
  );
}

const within = (...queues: string[]) => ({ queues, owner: null });

it('R-AD6: finds the queues that begin so and have a queued task, once for overlapping patterns', async () => {
  const queues = new WaitingQueues(db, { maxNames: 100, freshForMs: 0 });
  const names = await queues.find(within('gpu-*', 'gpu-1*', 'cpu-*', 'idle'));
  expect(names).toHaveLength(24);
  expect(names).toEqual(expect.arrayContaining(['cpu-a', 'cpu-b', 'gpu-', 'gpu-00', 'gpu-19']));
  expect(names).toContain('idle');
  expect(await queues.find(within('*'))).toHaveLength(26);
});

it('R-AD6: finds every queue within some looks when there are more than one look takes', async () => {
  const queues = new WaitingQueues(db, { maxNames: 3, freshForMs: 0 });
  const found = new Set<string>();
  for (let look = 0; look < 8; look += 1) {
    const names = await queues.find(within('cpu-*', 'gpu-*'));
    expect(names.length).toBeLessThanOrEqual(3);
    for (const name of names) found.add(name);
  }
  expect(found.size).toBe(23);
});

it('R-AD6: keeps the names of queues that are empty again, while there is room for them', async () => {
  const queues = new WaitingQueues(db, { maxNames: 100, freshForMs: 0 });
  await queue(['short-a', 'short-b']);
  expect(await queues.find(within('short-*'))).toEqual(['short-a', 'short-b']);
  await db.query(`delete from sluice.tasks where queue = 'short-a'`);
  expect(await queues.find(within('short-*'))).toEqual(['short-a', 'short-b']);
});

it('R-AD6: all polls with the same patterns share one look', async () => {
  let looks = 0;
  const query: Database['query'] = (text, parameters) => {
    looks += 1;
    return db.query(text, parameters);
  };
  const queues = new WaitingQueues({ ...db, query }, { maxNames: 100, freshForMs: 60_000 });
  await Promise.all(Array.from({ length: 50 }, () => queues.find(within('gpu-*'))));
  await queues.find(within('gpu-*'));
  expect(looks).toBe(1);
});
