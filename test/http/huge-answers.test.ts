import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openEngine, type Engine } from '../../src/engine/open-engine.js';
import { bounds } from '../../src/protocol/bounds.js';
import { AnswerBudget } from '../../src/engine/answer-budget.js';
import { serve, type RunningServer } from '../../src/server/serve.js';
import { submitAll, TestWorker } from '../integration/support.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { until } from '../support/until.js';

const mib = 1024 * 1024;

/** A client that does not read its answer holds the bytes of it until it is cut off. */
describe('answers that nobody reads', () => {
  let database: TestDatabase;
  let server: RunningServer;
  let taskId: string;
  const answers = new AnswerBudget({ maxBytes: 0, waitMs: 300, unreadForMs: 4_000 });

  beforeAll(async () => {
    database = await createTestDatabase();
    server = await serve({
      database: { kind: 'postgres', url: database.url },
      host: '127.0.0.1',
      port: 0,
      answers,
    });
    await submitAll(
      server.engine,
      Array.from({ length: 9 }, () => ({ taskType: 'large' })),
    );
    const worker = await TestWorker.register(server.engine);
    for (const task of await worker.take(9)) {
      await worker.complete(task, 'r'.repeat(mib - 2));
      taskId = task.taskId;
    }
  });
  afterAll(async () => {
    await server.close();
    await database.drop();
  });

  it('R-HA3: are bounded in all; then reads get 503 with Retry-After, and tasks still reach workers', async () => {
    const url = `${server.url}/api/v1/tasks/${taskId}`;
    const list = `${server.url}/api/v1/tasks?include=result`;
    const readers = Array.from({ length: 6 }, () => unread(list));
    await until('two of them to be sent', () => answers.room === 0);
    const refused = await until('a read to be refused', async () => {
      const answer = await fetch(url);
      await answer.arrayBuffer();
      return answer.status === 503 ? answer : null;
    });
    expect(refused.headers.get('retry-after')).toBe('1');
    // What keeps leases alive and needs few bytes is not held up.
    const worker = await TestWorker.register(server.engine);
    await worker.beat([]);
    await submitAll(server.engine, [{ taskType: 'waiting' }]);
    expect(answers.room).toBe(0);
    expect(await worker.takeOne()).toMatchObject({ taskType: 'waiting', attempt: 1 });
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
    for (const reader of readers) reader.destroy();
    await until('the room to be back', () => answers.room === 2 * bounds.answerBytes);
    expect((await fetch(url)).status).toBe(200);
  });

  it('R-HA3: are given up when nothing of them was read for a while', async () => {
    const readers = Array.from({ length: 3 }, () =>
      unread(`${server.url}/api/v1/tasks?include=result`),
    );
    await until('two of them to be sent', () => answers.room === 0);
    await until('the room to be back', () => answers.room === 2 * bounds.answerBytes);
    for (const reader of readers) reader.destroy();
  });

  it('R-HA3: refuse a change whose answer would add to them, before it is made', async () => {
    const two = [{ taskType: 'changed' }, { taskType: 'changed' }];
    const [first, second] = await submitAll(server.engine, two);
    if (first === undefined || second === undefined) throw new Error('nothing was submitted');
    const change = async (id: string) => {
      const answer = await fetch(`${server.url}/api/v1/tasks/${id}`, {
        method: 'PATCH',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ priority: 'high' }),
      });
      await answer.arrayBuffer();
      return answer.status;
    };
    const readers = Array.from({ length: 6 }, () =>
      unread(`${server.url}/api/v1/tasks?include=result`),
    );
    await until('a change to be refused', async () => (await change(first)) === 503);
    const statuses = await Promise.all(Array.from({ length: 20 }, () => change(second)));
    expect(new Set(statuses)).toEqual(new Set([503]));
    for (const reader of readers) reader.destroy();
    await until('the room to be back', () => answers.room === 2 * bounds.answerBytes);
    expect((await server.engine.getTask(second)).priority).toBe('medium');
    expect(await change(second)).toBe(200);
    expect((await server.engine.getTask(second)).priority).toBe('high');
  });

  it('R-HA3: of clients that leave before they are made leave nothing behind', async () => {
    const list = `${server.url}/api/v1/tasks?include=result`;
    for (let afterMs = 1; afterMs <= 40; afterMs += 3) {
      const reader = unread(list);
      await delay(afterMs);
      reader.destroy();
    }
    await until('the room to be back', () => answers.room === 2 * bounds.answerBytes);
  });
});

describe('many whole tasks at once', () => {
  let database: TestDatabase;
  let engine: Engine;
  const answers = new AnswerBudget({ maxBytes: 0 });

  beforeAll(async () => {
    database = await createTestDatabase();
    engine = await openEngine({ database: { kind: 'postgres', url: database.url }, answers });
  });
  afterAll(async () => {
    await engine.close();
    await database.drop();
  });

  it('R-HA3: are read a few at a time, and all of them are answered', async () => {
    const [id] = await submitAll(engine, [{ taskType: 'large' }]);
    if (id === undefined) throw new Error('nothing was submitted');
    let least = answers.room;
    const watching = { isOver: false };
    const watch = (async () => {
      while (!watching.isOver) {
        least = Math.min(least, answers.room);
        await delay(1);
      }
    })();
    const tasks = await Promise.all(Array.from({ length: 200 }, () => engine.getTask(id)));
    watching.isOver = true;
    await watch;
    expect(tasks).toHaveLength(200);
    expect(least).toBeGreaterThanOrEqual(0);
    expect(answers.room).toBe(2 * bounds.answerBytes);
  });
});

/** Asks, and never reads the answer. */
function unread(url: string): { destroy: () => void } {
  const asked = request(url, { agent: false }, (answer) => answer.pause());
  asked.on('error', () => undefined);
  asked.end();
  return asked;
}
