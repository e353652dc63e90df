import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';

import { SluiceError } from '../../src/domain/errors.js';
import { Engine } from '../../src/engine/engine.js';
import { openEngine } from '../../src/engine/open-engine.js';
import type { DeadLetterFilter } from '../../src/protocol/dead-letters-api.js';
import { MemoryReadyQueue } from '../../src/ready/memory/memory-ready-queue.js';
import { systemClock } from '../../src/runtime/clock.js';
import { serve } from '../../src/server/serve.js';
import type { Database, Queryable } from '../../src/store/database.js';
import { openPgDatabase } from '../../src/store/pg-database.js';
import { openLine } from '../support/line.js';
import { freshPglite } from '../support/pglite.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { until } from '../support/until.js';
import { contextOf } from './engine-parts.js';
import {
  broken,
  describeOnPostgres,
  drafts,
  freshQueue,
  submitAll,
  TestWorker,
} from './support.js';

const readMs = 500;

describeOnPostgres('slow reads', (server) => {
  it('R-HA3: health, statistics and analysis are computed once for all who ask in a second', async () => {
    const db = await openPgDatabase({ url: server().url });
    const { db: watched, statements } = watching(db);
    const ready = new MemoryReadyQueue({ clock: systemClock });
    const engine = new Engine(contextOf(watched, ready), 'submit');
    const ask = async () => {
      engine.databaseTrouble();
      const confined = engine.analyseDeadLetters({ queues: ['a*'], owner: null });
      await Promise.all([engine.getStatistics(), engine.analyseDeadLetters(), confined]);
    };
    await ask();
    const once = statements.length;
    await Promise.all(Array.from({ length: 100 }, ask));
    expect(once).toBeGreaterThan(0);
    expect(statements.length).toBe(once);
    await engine.close();
  });

  it('R-HA2: do not make what was written look refused', async () => {
    const database = { kind: 'postgres', url: server().url, patience: { readMs } } as const;
    const engine = await openEngine({ database });
    const queue = freshQueue();
    const [paused, changed] = [freshQueue(), freshQueue()];
    const worker = await TestWorker.register(engine);
    await becomeDeadLetters(engine, worker, 1, queue);
    const [dead] = (await engine.listDeadLetters({ queue })).items;
    const slow = await slowFilter(engine);
    const [waiting] = await submitAll(engine, drafts(1, { queue: paused, taskType: 'idle' }));
    if (dead === undefined || waiting === undefined) throw new Error('both are there');
    // All connections for reads are taken, and those that wait for one are refused after a while.
    const [former] = await server().sql<{ text: string }>(
      `select pg_get_functiondef('sluice.error_code(json)'::regprocedure) as text`,
    );
    await server().sql(slowErrorCode);
    const done = new AbortController();
    const reading = Array.from({ length: 30 }, async () => {
      while (!done.signal.aborted) {
        await engine.listDeadLetters(slow).catch(() => null);
      }
    });
    const refusal = await until('reads to be refused', () =>
      engine.getQueue(paused).then(
        () => null,
        (error: unknown) => error,
      ),
    );
    expect(refusal).toMatchObject({ code: 'unavailable' });
    expect((await engine.pauseQueue(paused)).settings.paused).toBe(true);
    expect((await engine.putQueue(changed, { maxActive: 7 })).settings.maxActive).toBe(7);
    expect((await engine.changeTask(waiting, { priority: 'high' })).priority).toBe('high');
    expect((await engine.replayTask(dead.taskId)).taskId).toBe(dead.taskId);
    expect((await engine.drainWorker(worker.workerId)).workerId).toBe(worker.workerId);
    done.abort();
    await Promise.all(reading);
    await server().sql(former?.text ?? '');
    await engine.close();
  });

  it('R-HA2: do not hold up heartbeats, and get 503 with a hint after their time', async () => {
    const database = { kind: 'postgres', url: server().url, patience: { readMs } } as const;
    const engine = await openEngine({ database });
    const worker = await TestWorker.register(engine);
    await becomeDeadLetters(engine, worker, 3);
    const slow = await slowFilter(engine);
    // Every look at the code of an error takes longer than any read may.
    await server().sql(slowErrorCode);
    const reads = Array.from({ length: 30 }, () =>
      engine.listDeadLetters(slow).catch((error: unknown) => error),
    );
    const beganMs = performance.now();
    const beats: number[] = [];
    const all = { areOver: false };
    const over = Promise.all(reads).then((answers) => {
      all.areOver = true;
      return answers;
    });
    while (!all.areOver) {
      const beatMs = performance.now();
      await worker.beat([]);
      beats.push(performance.now() - beatMs);
    }
    const tookMs = performance.now() - beganMs;
    for (const refusal of await over) {
      expect(refusal).toBeInstanceOf(SluiceError);
      expect(refusal).toMatchObject({ code: 'unavailable', retryAfterSeconds: 5 });
      expect((refusal as SluiceError).message).toMatch(/Ask for less/);
    }
    // One wait for a turn and one for the statement; a beat waits for neither.
    expect(tookMs).toBeLessThan(10 * readMs);
    expect(beats.length).toBeGreaterThan(3);
    expect(Math.max(...beats)).toBeLessThan(tookMs);
    await engine.close();
  });
});

const slowErrorCode = `
  create or replace function sluice.error_code(error json) returns text
  language plpgsql immutable strict as $$
  begin perform pg_sleep(60); return 'BROKEN'; end $$`;

describe('slow reads on PGlite', () => {
  it('R-HA2: wait for one another, and a heartbeat for one of them at most', async () => {
    const engine = await openEngine({ database: freshPglite() });
    const worker = await TestWorker.register(engine);
    await becomeDeadLetters(engine, worker, 20);
    const answered: string[] = [];
    const reads = Array.from({ length: 50 }, async () => {
      await engine.listDeadLetters({ code: 'none' });
      answered.push('read');
    });
    await worker.beat([]);
    answered.push('beat');
    await Promise.all(reads);
    // With all reads in one line, the beat would have come last. It is several turns of the event loop long, in which
    // 2 to 12 short reads were answered.
    expect(answered.indexOf('beat')).toBeLessThan(25);
    await engine.close();
  });
});

describe('what health checks tell strangers', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());

  it('R-HA3: no host, user or error of the database or Redis', async () => {
    const { port, username } = new URL(database.url);
    const line = await openLine(Number(port));
    const redis = await openLine(Number(new URL(inject('redisUrl')).port));
    const server = await serve({
      database: { kind: 'postgres', url: withPort(database.url, line.url) },
      redisUrl: withPort(inject('redisUrl'), redis.url),
      host: '127.0.0.1',
      port: 0,
    });
    line.cut();
    redis.cut();
    const told = await until('it to be not ready', async () => {
      const ready = await fetch(`${server.url}/readyz`);
      const live = await (await fetch(`${server.url}/healthz`)).text();
      const text = `${await ready.text()} ${live}`;
      // The proof that a server writes once a second is what tells of Postgres.
      const isTold = text.includes('Postgres') && live.includes('degraded');
      return ready.status === 503 && isTold ? text : null;
    });
    expect(told).toMatch(/Postgres (is away|does not answer)/);
    expect(told).toContain('Redis');
    expect(told).not.toMatch(/127\.0\.0\.1|ECONN|terminated|refused/);
    expect(told).not.toContain(username);
    expect(told).not.toContain(new URL(line.url).port);
    expect(told).not.toContain(new URL(redis.url).port);
    line.mend();
    redis.mend();
    await server.close();
    await Promise.all([line.close(), redis.close()]);
  });
});

async function becomeDeadLetters(
  engine: Engine,
  worker: TestWorker,
  count: number,
  queue = freshQueue(),
): Promise<void> {
  await submitAll(engine, drafts(count, { taskType: 'failing', queue }));
  for (const task of await worker.take(count, { queues: [queue] })) {
    await worker.fail(task, { retriable: false });
  }
}

/** A walk by pattern reads the code of each error. */
async function slowFilter(engine: Engine): Promise<DeadLetterFilter> {
  const { code } = broken;
  return until('its pattern to be counted', async () => {
    const counted = await engine.analyseDeadLetters();
    const pattern = counted.find((one) => one.code === code && one.taskType === 'failing');
    return pattern === undefined ? null : { code, pattern: pattern.id };
  });
}

function withPort(url: string, other: string): string {
  const changed = new URL(url);
  changed.hostname = '127.0.0.1';
  changed.port = new URL(other).port;
  return changed.href;
}

/** Does what the database does, and keeps what it was asked. */
function watching(db: Database): { readonly db: Database; readonly statements: string[] } {
  const statements: string[] = [];
  const watch = (on: Queryable): Queryable => ({
    query: (text, parameters) => {
      statements.push(text);
      return on.query(text, parameters);
    },
    run: (script) => on.run(script),
  });
  const { urgent, vital, reads } = db;
  const parts = { urgent: watch(urgent), vital: watch(vital), reads: watch(reads) };
  return { db: { ...db, ...watch(db), ...parts }, statements };
}
