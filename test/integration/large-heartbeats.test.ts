import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { TaskId } from '../../src/domain/ids.js';
import { openEngine, type Engine } from '../../src/engine/open-engine.js';
import { freshPglite } from '../support/pglite.js';
import { submitAll, TestWorker } from './support.js';

let engine: Engine;
beforeAll(async () => {
  engine = await openEngine({ database: freshPglite() });
});
afterAll(() => engine.close());

/** What this process computed meanwhile, whatever else the machine does. */
async function cpuSecondsOf(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user } = process.cpuUsage(before);
  return user / 1e6;
}

it('R-HA3: a heartbeat that names very many tasks, of which many were cancelled, holds up nobody', async () => {
  const worker = await TestWorker.register(engine, { capacity: 100_000 });
  await submitAll(
    engine,
    Array.from({ length: 3_000 }, () => ({ taskType: 'cancelled' })),
  );
  const held = (await worker.take(3_000)).map(({ taskId }) => taskId);
  await engine.cancelTasks({ taskType: 'cancelled' });
  const foreign = Array.from({ length: 190_000 }, () => randomUUID() as TaskId);
  const beat = {
    currentLoad: 3_000,
    status: 'active',
    currentTasks: [...held, ...foreign],
  } as const;
  const seconds = await cpuSecondsOf(async () => {
    const { cancelled, lost } = await engine.heartbeat(worker.workerId, beat);
    expect(cancelled.toSorted()).toEqual(held.toSorted());
    expect(lost).toHaveLength(foreign.length);
  });
  // One by one, each that is lost with each that was cancelled, it is four seconds.
  expect(seconds).toBeLessThan(1.5);
});
