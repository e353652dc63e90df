import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres.js';
import { newWorkerId } from '../../test/store/lifecycle.js';
import type { WorkerOffer } from '../protocol/workers-api.js';
import type { Database } from '../store/database.js';
import { openPgDatabase } from '../store/pg-database.js';
import { registerWorker } from '../store/workers.js';
import { ActiveWorkers } from './active-workers.js';
import type { EngineContext } from './context.js';

let created: TestDatabase;
let db: Database;
beforeAll(async () => {
  created = await createTestDatabase('store');
  db = await openPgDatabase({ url: created.url });
});
beforeEach(() => db.query('truncate sluice.workers'));
afterAll(async () => {
  await db.close();
  await created.drop();
});

/** With what it asks Postgres. */
function openActive() {
  const asked: string[] = [];
  const counted: Pick<Database, 'query'> = {
    query: (text, parameters) => {
      asked.push(text.includes('array_to_json') ? 'offers' : 'counts');
      return db.query(text, parameters);
    },
  };
  const context = { db: counted, clock: null } as unknown as EngineContext;
  return { active: new ActiveWorkers(context), asked };
}

async function register(offer: WorkerOffer, count = 1): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    await registerWorker(db, newWorkerId(), { ...offer, capacity: 2 }, null);
  }
}

const laneOf = (taskType: string) => ({ queue: 'q', taskType, capabilities: [] });

it('R-HA4: what workers name is read once, for all who ask and all who can do the same', async () => {
  await register({ taskTypes: ['a', 'b'] }, 3);
  await register({ taskTypes: ['b', 'a'] });
  const { active, asked } = openActive();
  const [first, second] = await Promise.all([active.get(), active.get()]);
  expect(second).toBe(first);
  expect(asked).toEqual(['counts', 'offers']);
  expect([...first.ableTo(laneOf('b'))]).toMatchObject([{ workers: 4, capacity: 8, free: 8 }]);
  await active.get();
  expect(asked).toEqual(['counts', 'offers', 'counts']);
});

it('R-HA4: the next look shows workers that came and leaves out those that went', async () => {
  const { active } = openActive();
  await register({ taskTypes: ['a'] });
  expect((await active.get()).isAnyAbleTo(laneOf('b'))).toBe(false);
  await register({ taskTypes: ['b'] });
  expect((await active.get()).isAnyAbleTo(laneOf('b'))).toBe(true);
  await db.query(`update sluice.workers set status = 'draining'`);
  const workforce = await active.get();
  expect(workforce.isAnyAbleTo(laneOf('b'))).toBe(false);
  expect(workforce.unseen.workers).toBe(0);
});

it('R-HA4: beyond 8 MiB of names those with the most workers are looked at, and the others counted', async () => {
  const { active } = openActive();
  for (let n = 0; n < 3; n += 1) await register({ taskTypes: [`large-${n}`] });
  await register({ taskTypes: ['usual'] }, 2);
  await db.query(`update sluice.workers set offer_weight = 3 * 1024 * 1024`);
  const workforce = await active.get();
  expect(workforce.isAnyAbleTo(laneOf('usual'))).toBe(true);
  const seen = [0, 1, 2].filter((n) => workforce.isAnyAbleTo(laneOf(`large-${n}`)));
  expect(seen).toHaveLength(1);
  expect(workforce.unseen).toEqual({ workers: 2, capacity: 4, busy: 0, free: 4 });
});
