import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openEngine, type Engine } from '../../src/engine/open-engine.js';
import { buildApp } from '../../src/server/app.js';
import type { App } from '../../src/server/app-parts.js';
import type { Progress, Readiness } from '../../src/server/ports.js';
import { freshPglite } from '../support/pglite.js';

let degradation: string | null = null;
let readiness: Readiness = { ready: true };
let progress: Progress = { progressing: true };
const logged: string[] = [];

let engine: Engine;
let app: App;
beforeAll(async () => {
  engine = await openEngine({ database: freshPglite() });
  app = buildApp({
    api: engine,
    health: {
      degradation: () => degradation,
      readiness: async () => readiness,
      progress: async () => progress,
    },
    events: engine,
    metrics: {
      contentType: 'text/plain',
      text: async () => {
        throw new Error('the password is hunter2');
      },
    },
    log: pino({ level: 'info' }, { write: (line: string) => logged.push(line) }),
    taskBytes: 1_000,
    requestBytes: 10_000,
  });
});
afterAll(async () => {
  await app.close();
  await engine.close();
});

describe('problem documents', () => {
  it('say nothing of what went wrong inside, and the log says all', async () => {
    const answer = await app.inject('/metrics?secret=1');
    expect([answer.statusCode, answer.json()]).toEqual([
      500,
      {
        type: '/docs#internal',
        title: 'Something went wrong on our side',
        status: 500,
        code: 'internal',
        detail: 'The server met an error that it did not expect',
        instance: '/metrics',
      },
    ]);
    const errors = logged.filter((line) => line.includes('hunter2'));
    expect(errors).toHaveLength(1);
    expect(errors[0]).not.toContain('secret');
  });

  it('name the reason and when to try again while a server can not serve', async () => {
    readiness = { ready: false, reason: 'Postgres does not answer' };
    const away = await app.inject('/readyz');
    expect([away.statusCode, away.headers['retry-after']]).toEqual([503, '1']);
    expect(away.json()).toMatchObject({ code: 'unavailable', detail: 'Postgres does not answer' });
    progress = { progressing: false, reason: 'nothing was claimed' };
    const stuck = await app.inject('/healthz/progress');
    expect([stuck.statusCode, stuck.json<{ code: string }>().code]).toEqual([503, 'unavailable']);
    expect((await app.inject('/healthz')).json()).toEqual({ status: 'live' });
    degradation = 'Redis does not answer';
    const degraded = await app.inject('/healthz');
    expect(degraded.statusCode).toBe(200);
    expect(degraded.json()).toEqual({ status: 'degraded', reason: degradation });
    degradation = null;
  });

  it('are not logged when it was the client that was wrong', async () => {
    const before = logged.length;
    expect((await app.inject('/nowhere')).statusCode).toBe(404);
    expect((await app.inject('/api/v1/queue/stats')).statusCode).toBe(200);
    expect(logged.length).toBe(before);
  });
});

it('the sizes that a call may have are settings', async () => {
  const submit = (bytes: number) =>
    app.inject({
      method: 'POST',
      url: '/api/v1/tasks',
      payload: { task_type: 'chat', parameters: { text: 'x'.repeat(bytes) } },
    });
  expect((await submit(900)).statusCode).toBe(201);
  expect((await submit(1_000)).statusCode).toBe(413);
  const tasks = Array.from({ length: 11 }, () => ({
    task_type: 'x'.repeat(180),
    parameters: { a: 'y'.repeat(720) },
  }));
  const batch = (count: number) =>
    app.inject({
      method: 'POST',
      url: '/api/v1/tasks/batch',
      payload: { tasks: tasks.slice(0, count) },
    });
  expect((await batch(2)).statusCode).toBe(200);
  expect((await batch(11)).statusCode).toBe(413);
});
