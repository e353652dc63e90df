import { randomUUID } from 'node:crypto';

import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres.js';
import type { WorkerId } from '../domain/ids.js';
import { ManualClock } from '../runtime/clock.js';
import type { Database } from '../store/database.js';
import { openPgDatabase } from '../store/pg-database.js';
import type { EngineContext } from './context.js';
import { Fleet } from './fleet.js';
import { defaultEngineSettings } from './settings.js';

let created: TestDatabase;
let db: Database;
beforeAll(async () => {
  created = await createTestDatabase('store');
  db = await openPgDatabase({ url: created.url });
});
afterAll(async () => {
  await db.close();
  await created.drop();
});

const minuteMs = 60_000;

function openFleet(maxBytes?: number) {
  const clock = new ManualClock(Date.UTC(2026, 0, 31));
  const context = { db, clock, settings: defaultEngineSettings } as unknown as EngineContext;
  return { clock, fleet: new Fleet(context, randomUUID(), maxBytes) };
}

async function register(fleet: Fleet, count: number): Promise<WorkerId[]> {
  const registered = await Promise.all(Array.from({ length: count }, () => fleet.register({})));
  return registered.map(({ workerId }) => workerId);
}

it('R-AD7: workers that are heard no more are not kept, though nobody told of their end', async () => {
  const { clock, fleet } = openFleet();
  const [heard] = await register(fleet, 20);
  if (heard === undefined) throw new Error('twenty were registered');
  clock.advance(minuteMs);
  await fleet.get(heard);
  fleet.forgetSilent();
  expect(fleet.size).toBe(20);
  clock.advance(1.5 * minuteMs);
  fleet.forgetSilent();
  expect(fleet.size).toBe(1);
  expect(fleet.find(heard)).not.toBeNull();
});

it('R-AD7: what a worker should be told does not pile up where it never comes', async () => {
  const { clock, fleet } = openFleet();
  const [workerId] = await register(fleet, 1);
  if (workerId === undefined) throw new Error('one was registered');
  const before = await fleet.get(workerId);
  const offered = await fleet.offerOf(before);
  clock.advance(3 * minuteMs);
  fleet.forgetSilent();
  expect(fleet.find(workerId)).toBeNull();
  // Who comes back after all is known as it was.
  const again = await fleet.get(workerId);
  expect(again.capacity).toBe(before.capacity);
  expect(await fleet.offerOf(again)).toMatchObject(offered);
});

it('R-AD7: however much workers say of themselves, what is kept of them has an end', async () => {
  const { fleet } = openFleet(60_000);
  const taskTypes = Array.from({ length: 1_000 }, (_, n) => `type-${n}`);
  const [heard] = await register(fleet, 1);
  if (heard === undefined) throw new Error('one was registered');
  const talkative: WorkerId[] = [];
  for (let n = 0; n < 10; n += 1) {
    talkative.push((await fleet.register({ taskTypes })).workerId);
    await fleet.get(heard);
  }
  // Who was heard last is kept; the others are read again when they come.
  expect(fleet.size).toBe(2);
  expect(fleet.find(heard)).not.toBeNull();
  for (const workerId of talkative) {
    const worker = await fleet.get(workerId);
    expect((await fleet.offerOf(worker)).taskTypes).toEqual(taskTypes);
  }
  expect(fleet.size).toBeLessThanOrEqual(2);
});
