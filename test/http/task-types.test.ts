import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { connect } from '../../src/client/connect.js';
import { defineTask } from '../../src/client/define-task.js';
import type { Sluice } from '../../src/client/sluice.js';
import type { Scope } from '../../src/domain/scopes.js';
import { listening, useKeyedHttp } from './keyed.js';
import { post } from './support.js';

const http = useKeyedHttp();

async function keyOf(scopes: readonly Scope[], queues?: string[]): Promise<string> {
  return (await http().make({ scopes, ...(queues === undefined ? {} : { queues }) })).key;
}

async function define(key: string, task_type: string, definition: object): Promise<string[]> {
  const body = { task_types: [task_type], definitions: [{ task_type, ...definition }] };
  const answer = await http().call(post('/internal/workers/register', body), key);
  expect(answer.status).toBe(200);
  return answer.json<{ notes?: string[] }>().notes ?? [];
}

async function submit(key: string, draft: object): Promise<string> {
  const answer = await http().call(post('/api/v1/tasks', draft), key);
  const { queue, code } = answer.json<{ queue?: string; code?: string }>();
  return queue ?? code ?? String(answer.status);
}

async function namesFor(key: string): Promise<string[]> {
  const { items } = (await http().call({ url: '/api/v1/task-types?limit=1000' }, key)).json<{
    items: { task_type: string }[];
  }>();
  return items.map(({ task_type }) => task_type);
}

describe('task types over HTTP', () => {
  let worker: Sluice;
  beforeAll(async () => {
    worker = connect(await listening(http().app), { apiKey: await keyOf(['worker', 'read']) });
  });
  afterAll(() => worker.close());

  it('a worker tells its definitions, and every submit that leaves them out gets them', async () => {
    const summarize = defineTask({
      ...{
        type: 'summarize',
        queue: 'gpt-4o',
        priority: 'high',
        maxRetries: 7,
        timeoutSeconds: 40,
      },
      ...{ cost: { tokens: 1200 }, retry: { codes: { NO_MODEL: false } } },
      input: z.object({ text: z.string() }),
      run: ({ text }) => text.length,
    });
    await worker.worker([summarize], { version: '1.0.0' }).start();
    expect(await submit(http().keys.submit, { task_type: 'summarize' })).toBe('gpt-4o');
    const batch = post('/api/v1/tasks/batch', { tasks: [{ task_type: 'summarize' }] });
    expect((await http().call(batch)).json()).toMatchObject({
      results: [{ task: { queue: 'gpt-4o', priority: 'high' } }],
    });
    const shown = await http().call({ url: '/api/v1/task-types/summarize' }, http().keys.read);
    expect(shown.json()).toMatchObject({
      ...{ task_type: 'summarize', queue: 'gpt-4o', priority: 'high', max_retries: 7 },
      ...{ timeout_seconds: 40, cost: { tokens: 1200 }, required_capabilities: [] },
      ...{ retry: { codes: { NO_MODEL: false } }, version: '1.0.0', has_input_schema: true },
      input_schema: { type: 'object', required: ['text'] },
    });
    // The typed twin of both routes.
    const [listed] = (await worker.api.listTaskTypes({ limit: 1 })).items;
    const { inputSchema, ...one } = await worker.api.getTaskType('summarize');
    expect([listed, inputSchema?.type]).toEqual([one, 'object']);
    expect(shown.body).not.toContain('"text":"');
  });

  it('refuses a definition with a field that nobody knows, with its path', async () => {
    const definitions = [{ task_type: 'typo', max_retry: 2 }];
    const body = { task_types: ['typo'], definitions };
    const answer = await http().call(post('/internal/workers/register', body));
    expect([answer.status, answer.body]).toEqual([400, expect.stringContaining('/definitions/0')]);
  });
});

describe('task types and keys that are confined to queues', () => {
  it('R-AD6: a worker may not decide where submits of a type go that it does not reach', async () => {
    const confined = await keyOf(['worker'], ['red-*']);
    const taken = [/^This key is confined to the queues red-\*: it may not decide/];
    // Of a type that nobody defined: its submits go to default.
    expect(await define(confined, 'undefined-yet', { queue: 'red-1' })).toMatchObject(
      matching(taken),
    );
    expect(await submit(http().keys.submit, { task_type: 'undefined-yet' })).toBe('default');
    // Of a type that others defined.
    await define(http().keys.worker, 'mail', { queue: 'blue', timeout_seconds: 50 });
    expect(await define(confined, 'mail', { queue: 'red-1' })).toMatchObject(matching(taken));
    expect(await submit(http().keys.submit, { task_type: 'mail' })).toBe('blue');
    // Into a queue of others.
    const reaching = await keyOf(['worker'], ['red-*', 'default']);
    expect(await define(reaching, 'own', { queue: 'red-1' })).toEqual([]);
    expect(await define(confined, 'own', { queue: 'blue' })).toMatchObject(matching(taken));
    expect(await submit(http().keys.submit, { task_type: 'own' })).toBe('red-1');
  });

  it('R-AD6: what a confined key defines counts for tasks of queues that it reaches alone', async () => {
    const reaching = await keyOf(['worker'], ['red-*', 'default']);
    await define(reaching, 'scoped', { queue: 'red-1', max_retries: 9 });
    const retriesIn = async (queue: string) => {
      const draft = { task_type: 'scoped', queue };
      const { task_id } = (await http().call(post('/api/v1/tasks', draft))).json<{
        task_id: string;
      }>();
      const task = await http().call({ url: `/api/v1/tasks/${task_id}` });
      return task.json<{ max_retries: number }>().max_retries;
    };
    expect([await retriesIn('red-2'), await retriesIn('blue')]).toEqual([9, 3]);
  });

  it('R-AD6: a submit gets the queue of its type only where its key reaches it', async () => {
    await define(http().keys.worker, 'red-type', { queue: 'red-1' });
    await define(http().keys.worker, 'blue-type', { queue: 'blue' });
    const red = await keyOf(['submit', 'read'], ['red-*']);
    expect(await submit(red, { task_type: 'red-type' })).toBe('red-1');
    const refused = await http().call(post('/api/v1/tasks', { task_type: 'blue-type' }), red);
    expect(refused.json()).toMatchObject({
      code: 'queue_forbidden',
      detail: 'This key is confined to the queues red-*; default is none of them.',
    });
    const batch = post('/api/v1/tasks/batch', {
      tasks: [{ task_type: 'blue-type' }, { task_type: 'red-type' }],
    });
    expect((await http().call(batch, red)).json()).toMatchObject({
      results: [{ error: { code: 'queue_forbidden' } }, { task: { queue: 'red-1' } }],
    });
    expect(await namesFor(red)).toEqual(expect.arrayContaining(['red-type']));
    expect(await namesFor(red)).not.toContain('blue-type');
    const hidden = await http().call({ url: '/api/v1/task-types/blue-type' }, red);
    const missing = await http().call({ url: '/api/v1/task-types/no-type' }, red);
    expect(hidden.status).toBe(404);
    expect(hidden.body.replaceAll('blue-type', '')).toBe(missing.body.replaceAll('no-type', ''));
  });
});

function matching(patterns: readonly RegExp[]): unknown[] {
  return patterns.map((pattern) => expect.stringMatching(pattern) as unknown);
}
