import Anthropic from '@anthropic-ai/sdk';
import axios from 'axios';
import got from 'got';
import OpenAI from 'openai';
import { Agent, interceptors, request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import {
  startModelProvider,
  type ModelProvider,
  type StandInAnswer,
} from '../../lab/stand-in/model-provider.js';
import { defineTask } from '../../src/client/define-task.js';
import { openEngine, type Engine } from '../../src/engine/open-engine.js';
import { readThrown } from '../../src/worker/errors.js';
import { freshPglite } from '../support/pglite.js';
import { until } from '../support/until.js';
import { unique, Workbench } from './workbench.js';

let provider: ModelProvider;
beforeAll(async () => {
  provider = await startModelProvider();
});
afterAll(() => provider[Symbol.asyncDispose]());

type Client = (answer: StandInAnswer) => Promise<unknown>;

/** Without retries of their own: Sluice retries. */
const clients: Readonly<Record<string, Client>> = {
  openai: (answer) =>
    new OpenAI({
      apiKey: 'key',
      baseURL: `${provider.url}/v1`,
      maxRetries: 0,
    }).chat.completions.create({ model: 'm', messages: [asked(answer)] }),
  '@anthropic-ai/sdk': (answer) =>
    new Anthropic({ apiKey: 'key', baseURL: provider.url, maxRetries: 0 }).messages.create({
      model: 'm',
      max_tokens: 10,
      messages: [asked(answer)],
    }),
  fetch: async (answer) => {
    const response = await fetch(`${provider.url}/v1/chat`, { method: 'POST', body: body(answer) });
    const { status, headers, ok } = response;
    const text = await response.text();
    if (!ok) throw Object.assign(new Error(`${status}`), { status, headers, body: text });
    return text;
  },
  axios: (answer) => axios.post(`${provider.url}/v1/chat`, body(answer)),
  got: (answer) =>
    got.post(`${provider.url}/v1/chat`, { body: body(answer), retry: { limit: 0 } }).json(),
  undici: (answer) =>
    request(`${provider.url}/v1/chat`, {
      method: 'POST',
      body: body(answer),
      dispatcher: new Agent().compose(interceptors.responseError()),
    }),
};

function asked(answer: StandInAnswer) {
  return { role: 'user', content: JSON.stringify(answer) } as const;
}

function body(answer: StandInAnswer): string {
  return JSON.stringify({ messages: [asked(answer)] });
}

async function thrownBy(client: Client, answer: StandInAnswer) {
  try {
    await client(answer);
  } catch (thrown) {
    return readThrown(thrown);
  }
  throw new Error('it was answered');
}

describe.each(Object.entries(clients))('R-RE4, R-RE9: errors of %s', (name, client) => {
  it.each([
    [400, 'HTTP_400', false],
    [401, 'UNAUTHORIZED', true],
    [403, 'FORBIDDEN', true],
    [404, 'HTTP_404', false],
    [408, 'HTTP_408', true],
    [409, 'HTTP_409', true],
    [413, 'HTTP_413', false],
    [422, 'HTTP_422', false],
    [425, 'HTTP_425', true],
    [429, 'RATE_LIMITED', true],
    [500, 'HTTP_500', true],
    [503, 'UNAVAILABLE', true],
    [529, 'UNAVAILABLE', true],
  ])('%d is %s, with its status', async (status, code, retriable) => {
    const { error, names } = await thrownBy(client, { status });
    expect(error).toMatchObject({ code, retriable, details: { status } });
    expect(names).toContain(`HTTP_${status}`);
  });

  it('a time in its headers is read', async () => {
    const { error } = await thrownBy(client, { status: 429, headers: { 'retry-after': '7' } });
    expect(error.retryAfterSeconds).toBe(7);
  });

  it('an account without quota, and what the service calls an error, are read from its body', async () => {
    const type = name === '@anthropic-ai/sdk' ? 'billing_error' : 'insufficient_quota';
    const quota = { status: 429, code: type, type };
    expect((await thrownBy(client, quota)).error).toMatchObject({
      code: 'QUOTA_EXHAUSTED',
      retriable: true,
      details: { status: 429, code: type },
    });
    const long = { status: 400, code: 'context_length_exceeded', type: 'invalid_request_error' };
    const { names } = await thrownBy(client, long);
    const said = name === '@anthropic-ai/sdk' ? long.type : long.code;
    expect(names).toContain(said);
  });
});

it('R-RE4: the classes of the SDKs are names for a policy', async () => {
  for (const name of ['openai', '@anthropic-ai/sdk']) {
    const client = clients[name];
    if (client === undefined) throw new Error('there is such a client');
    expect((await thrownBy(client, { status: 400 })).names).toContain('BadRequestError');
    expect((await thrownBy(client, { status: 401 })).names).toContain('AuthenticationError');
    expect((await thrownBy(client, { status: 429 })).names).toContain('RateLimitError');
  }
});

describe('R-RE9: tasks that call a model with the SDKs', () => {
  let engine: Engine;
  let bench: Workbench;
  beforeAll(async () => {
    engine = await openEngine({ database: freshPglite() });
    bench = new Workbench({
      api: engine,
      cut: async () => undefined,
      restore: async () => undefined,
      close: () => engine.close(),
    });
  });
  afterAll(() => engine.close());

  const sdks = ['openai', '@anthropic-ai/sdk'] as const;

  function calling(sdk: string, queue = unique('model')) {
    const client = clients[sdk];
    if (client === undefined) throw new Error('there is such a client');
    return defineTask<unknown>({
      type: unique('call'),
      queue,
      maxRetries: 1,
      retry: { delaySeconds: [0] },
      run: async (input) => {
        await client(input as unknown as StandInAnswer);
        return 'done';
      },
    });
  }

  it.each(sdks)('%s: each status is retried, or not, and the status is kept', async (sdk) => {
    const retried = [408, 409, 425, 500];
    for (const status of [400, 404, 413, 422, ...retried]) {
      const task = calling(sdk);
      const ended = await bench.working([task], async () => {
        return (await bench.sluice.submit(task, { status })).ended();
      });
      expect(ended).toMatchObject({
        status: 'dead_letter',
        attempt: retried.includes(status) ? 2 : 1,
        error: { code: `HTTP_${status}`, details: { status } },
      });
    }
  });

  it.each(sdks)('%s: 401 ends one task and stops the queue until it is resumed', async (sdk) => {
    const queue = unique('model');
    const task = calling(sdk, queue);
    provider.answerAll({ status: 401, code: 'invalid_api_key', type: 'authentication_error' });
    await bench.working(
      [task],
      async () => {
        const inputs = Array.from({ length: 200 }, () => ({ input: { status: 200 } }));
        await bench.sluice.submitMany(task, inputs);
        await until('the queue to stop', async () => {
          const { live } = await engine.getQueue(queue);
          return live.circuit === 'open' && live.running === 0;
        });
        expect((await engine.getQueue(queue)).live.pausedWhy).toBe(
          'its service refuses the API key (401)',
        );
        provider.answerAll(null);
        await engine.resumeQueue(queue);
        await until('all others to be done', async () => {
          const page = await engine.listTasks({ queue, status: 'completed' }, { limit: 200 });
          return page.items.length === 199;
        });
      },
      { concurrency: 10 },
    );
    expect((await engine.listDeadLetters({ queue })).items).toMatchObject([
      { attempt: 1, error: { code: 'UNAUTHORIZED', details: { status: 401 } } },
    ]);
  });

  it.each(sdks)('%s: one of 120 that is refused every time stops nobody', async (sdk) => {
    const queue = unique('model');
    const task = calling(sdk, queue);
    const refused = {
      status: 429,
      code: 'rate_limit_exceeded',
      headers: { 'retry-after-ms': '1' },
    };
    const before = { ...provider.counts };
    await engine.putQueue(queue, { maxConcurrency: 10 });
    const { version } = await engine.getQueue(queue);
    await bench.working(
      [task],
      async () => {
        const poisoned = await bench.sluice.submit(task, refused);
        const good = Array.from({ length: 119 }, () => ({ input: { status: 200 } }));
        await bench.sluice.submitMany(task, good);
        expect(await poisoned.ended()).toMatchObject({
          status: 'dead_letter',
          retryCount: 1,
          error: { code: 'RATE_LIMITED', details: { status: 429, class: 'RateLimitError' } },
        });
        await until('all others to be done', async () => {
          const page = await engine.listTasks({ queue, status: 'completed' }, { limit: 200 });
          return page.items.length === 119;
        });
      },
      { concurrency: 10 },
    );
    const { version: after } = await engine.getQueue(queue);
    expect(after).toBe(version);
    expect((provider.counts[200] ?? 0) - (before[200] ?? 0)).toBe(119);
    expect((provider.counts[429] ?? 0) - (before[429] ?? 0)).toBe(3 + 1 + 1);
  });

  it('openai: a queue with the limit of its service is never answered 429', async () => {
    await using counting = await startModelProvider({ requestsPerMinute: 3_000 });
    const openai = new OpenAI({ apiKey: 'key', baseURL: `${counting.url}/v1`, maxRetries: 0 });
    const queue = unique('model');
    const task = defineTask({
      type: unique('call'),
      queue,
      run: async () => {
        await openai.chat.completions.create({
          model: 'm',
          messages: [{ role: 'user', content: 'Yes?' }],
        });
      },
    });
    await engine.putQueue(queue, {
      limits: [{ unit: 'requests', rate: 3_000, perSeconds: 60, burst: null }],
    });
    await bench.working(
      [task],
      async () => {
        const handles = await bench.submitAll(task, 200);
        await Promise.all(handles.map((handle) => handle.ended()));
      },
      { concurrency: 100 },
    );
    expect(counting.counts).toEqual({ 200: 200 });
  });
});
