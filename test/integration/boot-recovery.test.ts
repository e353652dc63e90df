import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { describe, expect, inject, it, onTestFinished } from 'vitest';

import { IdSource, type TaskId } from '../../src/domain/ids.js';
import {
  openDatabase,
  openEngine,
  type Engine,
  type OpenEngineOptions,
} from '../../src/engine/open-engine.js';
import { silentLog } from '../../src/runtime/log.js';
import type { Database } from '../../src/store/database.js';
import { buryWorker, registerWorker } from '../../src/store/workers.js';
import { atSecond, seedTask } from '../store/seed.js';
import { freshPglite } from '../support/pglite.js';
import { createTestDatabase } from '../support/postgres.js';
import { until } from '../support/until.js';
import { quickTicks, TestWorker } from './support.js';

type Where = Pick<OpenEngineOptions, 'database' | 'redisUrl'>;

const ids = new IdSource();
const settings = { ...quickTicks, heartbeatIntervalMs: 100 };
const hourMs = 3_600_000;

/** What it was, and the retries that its recovery costs. */
type Orphans = ReadonlyMap<TaskId, { readonly was: string; readonly retries: number }>;

async function seedOrphans(db: Database): Promise<Orphans> {
  const now = new Date();
  const dead = ids.nextWorkerId(Date.now() - hourMs);
  const living = ids.nextWorkerId(Date.now());
  await registerWorker(db, dead, { capacity: 9 }, atSecond(-3_600));
  await buryWorker(db, dead);
  await registerWorker(db, living, { capacity: 9 }, now);
  const orphans = [
    ['executing, its worker dead', 1, { status: 'executing', workerId: dead }],
    ['executing, its worker unknown', 1, { status: 'executing' }],
    ['assigned to the dead', 1, { status: 'assigned', workerId: dead }],
    [
      'assigned to the living and never started',
      0,
      { status: 'assigned', workerId: living, lapsesAt: atSecond(-60) },
    ],
    ['queued, and not in the ready queue', 0, { status: 'queued' }],
    [
      'blocked, and nobody before it lives',
      0,
      { status: 'pending', waitsFor: 'workflow', workflowId: 'left-alone' },
    ],
  ] as const;
  const seeded = new Map<TaskId, { was: string; retries: number }>();
  for (const [was, retries, seed] of orphans) {
    seeded.set((await seedTask(db, seed)).taskId, { was, retries });
  }
  return seeded;
}

/** The ready queue is there from an earlier life and is not filled anew, where it outlives a server. */
async function recovers(where: Where, first = where): Promise<void> {
  await (await openEngine({ ...first, settings })).close();
  const db = await openDatabase(where.database, silentLog);
  const orphans = await seedOrphans(db);
  await db.close();

  const engine = await openEngine({ ...where, settings });
  onTestFinished(() => engine.close());
  await untilQueued(engine, orphans);
  const worker = await TestWorker.register(engine);
  onTestFinished(worker.keepBeating(50));
  const tasks = await worker.take(orphans.size);
  expect(
    new Map(tasks.map(({ taskId, retryCount }) => [orphans.get(taskId)?.was, retryCount])),
  ).toEqual(new Map([...orphans.values()].map(({ was, retries }) => [was, retries])));
  const answers = await worker.completeAll(tasks);
  expect(answers.every(({ accepted }) => accepted)).toBe(true);
}

/** By what it tells by itself: nothing is asked of it. */
async function untilQueued(engine: Engine, orphans: Orphans): Promise<void> {
  const queued = new Set<TaskId>();
  for (const [taskId, { was }] of orphans) if (was.startsWith('queued')) queued.add(taskId);
  const unsubscribe = engine.subscribe(({ taskId, to }) => {
    if (to === 'queued') queued.add(taskId);
  });
  const areAll = () => [...orphans.keys()].every((taskId) => queued.has(taskId));
  await until('all to be queued again', areAll);
  unsubscribe();
}

describe('orphans in the database', () => {
  it('R-RE6: are recovered at boot with no request made, on PGlite', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'sluice-boot-'));
    onTestFinished(() => {
      rmSync(dataDir, { recursive: true, force: true });
    });
    const first = { database: { ...freshPglite(), dataDir } };
    await recovers({ database: { kind: 'pglite', dataDir } }, first);
  });

  it('R-RE6: are recovered at boot with no request made, on Postgres', async () => {
    const { url, drop } = await createTestDatabase();
    onTestFinished(drop);
    await recovers({ database: { kind: 'postgres', url } });
  });

  it('R-RE6: are recovered at boot with no request made, on Postgres with Redis', async () => {
    const { url, drop } = await createTestDatabase();
    onTestFinished(drop);
    await recovers({ database: { kind: 'postgres', url }, redisUrl: inject('redisUrl') });
  });
});
