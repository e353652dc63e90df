import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { openEngine } from '../../src/engine/open-engine.js';
import { silentLog } from '../../src/runtime/log.js';
import { buildApp } from '../../src/server/app.js';
import { readAll, useHttp } from './support.js';
import { freshPglite } from '../support/pglite.js';

const http = useHttp();

async function listen(): Promise<string> {
  const { app } = http();
  if (!app.server.listening) await app.listen({ host: '127.0.0.1', port: 0 });
  const address = app.server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return `http://127.0.0.1:${address.port}`;
}

async function register(): Promise<string> {
  const answer = await http().call({ method: 'POST', url: '/internal/workers/register', body: {} });
  return answer.json<{ worker_id: string }>().worker_id;
}

const submit = (queue: string, task_type = 'chat') =>
  http().call({ method: 'POST', url: '/api/v1/tasks', body: { task_type, queue } });

describe('long polls', () => {
  it('is answered by a task that is submitted while it waits', async () => {
    const worker = await register();
    const polled = http().call({
      method: 'POST',
      url: `/internal/workers/${worker}/poll`,
      body: { available_capacity: 1, wait_seconds: 60, queues: ['woken'] },
    });
    const { task_id } = (await submit('woken')).json<{ task_id: string }>();
    expect((await polled).json()).toMatchObject({ tasks: [{ task_id }] });
  });

  it('a wait is answered when the task ends', async () => {
    const { task_id } = (await submit('awaited')).json<{ task_id: string }>();
    const waited = http().call({ url: `/api/v1/tasks/${task_id}/wait?timeout_seconds=60` });
    await http().call({ method: 'DELETE', url: `/api/v1/tasks/${task_id}` });
    expect((await waited).json()).toMatchObject({ task_id, status: 'cancelled' });
  });

  it('takes nothing for a client that has gone', async () => {
    const base = await listen();
    const worker = await register();
    const leaving = new AbortController();
    const gone = fetch(`${base}/internal/workers/${worker}/poll`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ available_capacity: 1, wait_seconds: 60, queues: ['left'] }),
      signal: leaving.signal,
    });
    const closed = new Promise((resolve) => {
      http().app.server.once('request', (_request, response: NodeJS.EventEmitter) => {
        response.once('close', resolve);
        leaving.abort();
      });
    });
    await expect(gone).rejects.toThrow();
    await closed;
    const { task_id } = (await submit('left')).json<{ task_id: string }>();
    const task = await http().call({ url: `/api/v1/tasks/${task_id}` });
    expect(task.json().status).toBe('queued');
  });
});

describe('GET /api/v1/events', () => {
  it('tells of state changes that its filter matches, and of statistics', async () => {
    const base = await listen();
    const leaving = new AbortController();
    const response = await fetch(`${base}/api/v1/events?queue=followed`, {
      signal: leaving.signal,
    });
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    const events = readEvents(response);
    await submit('not-followed');
    const { task_id } = (await submit('followed')).json<{ task_id: string }>();
    await http().call({ method: 'DELETE', url: `/api/v1/tasks/${task_id}` });
    const seen: { name: string; data: Record<string, unknown> }[] = [];
    while (!['task', 'stats'].every((name) => seen.some((event) => event.name === name))) {
      const next = await events.next();
      if (next.done === true) break;
      seen.push(next.value);
    }
    leaving.abort();
    const [task] = seen.filter(({ name }) => name === 'task');
    expect(task?.data).toMatchObject({ task_id, queue: 'followed', from: 'new', status: 'queued' });
    const [stats] = seen.filter(({ name }) => name === 'stats');
    expect(stats?.data).toHaveProperty('throughput');
  });

  it('refuses an unknown filter before it becomes a stream', async () => {
    const answer = await http().call({ url: '/api/v1/events?colour=red' });
    expect([answer.status, answer.json().code]).toEqual([400, 'invalid_request']);
  });
});

describe('what is not even HTTP', () => {
  it.each([
    ['garbage', 'no such thing\r\n\r\n'],
    ['two lengths', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'],
  ])('%s is refused with a problem document', async (_name, sent) => {
    const { port } = new URL(await listen());
    const socket = connect(Number(port), '127.0.0.1');
    await once(socket, 'connect');
    socket.write(sent);
    const answer = await readAll(socket);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain('"code":"invalid_request"');
  });
});

describe('closing', () => {
  it('ends long polls and event streams at once', async () => {
    const engine = await openEngine({ database: freshPglite() });
    const app = buildApp({
      api: engine,
      health: {
        degradation: () => null,
        readiness: async () => ({ ready: true }),
        progress: async () => ({ progressing: true }),
      },
      events: engine,
      metrics: { contentType: 'text/plain', text: async () => '' },
      log: silentLog,
    });
    const base = await app.listen({ host: '127.0.0.1', port: 0 });
    const { workerId } = await engine.register({});
    const stream = await fetch(`${base}/api/v1/events`);
    const arrived = once(app.server, 'request');
    const poll = fetch(`${base}/internal/workers/${workerId}/poll`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ available_capacity: 1, wait_seconds: 60 }),
    });
    await arrived;
    const closed = app.close();
    const polled = await poll;
    expect([200, 503]).toContain(polled.status);
    await stream.text();
    await closed;
    await engine.close();
  });
});

async function* readEvents(
  response: Response,
): AsyncGenerator<{ name: string; data: Record<string, unknown> }> {
  if (response.body === null) return;
  let text = '';
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const frames = text.split('\n\n');
    text = frames.pop() ?? '';
    for (const frame of frames) {
      const [, name, data] = /^event: (\w+)\ndata: (.*)$/.exec(frame) ?? [];
      if (name !== undefined && data !== undefined) {
        yield { name, data: JSON.parse(data) as Record<string, unknown> };
      }
    }
  }
}
