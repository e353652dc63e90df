import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { CreatedKey } from '../../src/protocol/keys-api.js';
import { serve, type RunningServer } from '../../src/server/serve.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import type { Problem } from './support.js';

interface LimitedProblem extends Problem {
  readonly retry_after_seconds: number;
}

const limits = { submitLimitPerKey: [{ rate: 5, perSeconds: 3_600 }] };
const task = { task_type: 'noop' };

describe('submission limits over HTTP', () => {
  let database: TestDatabase;
  let server: RunningServer;
  let admin: CreatedKey;

  beforeAll(async () => {
    database = await createTestDatabase();
    server = await serve({
      host: '127.0.0.1',
      port: 0,
      database: { kind: 'postgres', url: database.url },
      settings: limits,
    });
    admin = await createKey(true);
  });
  afterAll(async () => {
    await server.close();
    await database.drop();
  });

  function createKey(passesCeilings = false): Promise<CreatedKey> {
    const scopes = ['submit', 'read', 'admin'] as const;
    return server.engine.createKey({ name: 'ci', scopes, passesCeilings });
  }

  function send(path: string, { key }: CreatedKey, body?: unknown): Promise<Response> {
    return fetch(`${server.url}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  async function refusals(): Promise<number> {
    const metrics = await (await send('/metrics', admin)).text();
    const [, count] =
      /sluice_admission_rejected_total\{reason="submission_limit"\} (\d+)/.exec(metrics) ?? [];
    return Number(count);
  }

  it('R-AD4: over its limit a key is answered 429, which says whose limit, what it is, and when to return', async () => {
    const key = await createKey();
    const before = await refusals();
    const statuses = await Promise.all(
      Array.from({ length: 10 }, async () => (await send('/api/v1/tasks', key, task)).status),
    );
    expect(statuses.filter((status) => status === 201)).toHaveLength(5);
    const answer = await send('/api/v1/tasks', key, task);
    const problem = (await answer.json()) as LimitedProblem;
    expect(answer.status).toBe(429);
    expect(problem).toMatchObject({ code: 'refused', status: 429 });
    expect(problem.detail).toContain(`API key ${key.id} may submit 5 tasks an hour`);
    expect(JSON.stringify(problem)).not.toContain(key.key);
    expect(Number(answer.headers.get('retry-after'))).toBe(problem.retry_after_seconds);
    expect(problem.retry_after_seconds).toBeGreaterThan(3_000);
    expect(problem.retry_after_seconds).toBeLessThanOrEqual(3_600 * 1.02 * 1.1 + 1);
    expect(await refusals()).toBe(before + 6);
  });

  it('R-AD4: of a batch those that fit pass; known ones are answered, reads are never refused', async () => {
    const key = await createKey();
    const known = { ...task, idempotency_key: 'known' };
    expect((await send('/api/v1/tasks', key, known)).status).toBe(201);
    const tasks = [task, task, task, task, task, known];
    const answer = await send('/api/v1/tasks/batch', key, { tasks });
    const { results } = (await answer.json()) as { results: { error?: LimitedProblem }[] };
    expect(answer.status).toBe(200);
    expect(results.map(({ error }) => error?.code ?? 'accepted')).toEqual([
      ...['accepted', 'accepted', 'accepted', 'accepted', 'refused', 'accepted'],
    ]);
    expect(results[4]?.error?.retry_after_seconds).toBeGreaterThan(3_000);
    expect((await send('/api/v1/tasks', key, known)).status).toBe(200);
    expect((await send('/api/v1/tasks', key)).status).toBe(200);
  });

  it('R-AD4: a key that passes the ceilings does not pass its limit, and others are not touched', async () => {
    const key = await createKey(true);
    const tasks = [task, task, task, task, task, task];
    await send('/api/v1/tasks/batch', key, { tasks });
    expect((await send('/api/v1/tasks', key, task)).status).toBe(429);
    expect((await send('/api/v1/tasks', await createKey(), task)).status).toBe(201);
  });
});
