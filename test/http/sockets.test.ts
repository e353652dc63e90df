import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openEngine, type Engine } from '../../src/engine/open-engine.js';
import { silentLog } from '../../src/runtime/log.js';
import { buildApp } from '../../src/server/app.js';
import type { App } from '../../src/server/app-parts.js';
import type { ConnectionLimits } from '../../src/server/connection-limits.js';
import { freshPglite } from '../support/pglite.js';
import { until } from '../support/until.js';
import { readAll } from './support.js';

let engine: Engine;
const apps: App[] = [];
const sockets: Socket[] = [];
beforeAll(async () => {
  engine = await openEngine({ database: freshPglite() });
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});
afterAll(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
  await engine.close();
});

interface Listening {
  readonly app: App;
  readonly port: number;
  /** Connections that the server still has. */
  readonly count: () => Promise<number>;
}

let usual: Promise<Listening> | null = null;
/** With the limits of every day: one for all. */
const listenAsUsual = () => (usual ??= listen({}));

async function listen(connections: Partial<ConnectionLimits>): Promise<Listening> {
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
    connections,
  });
  apps.push(app);
  await app.listen({ host: '127.0.0.1', port: 0 });
  const address = app.server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const count = () =>
    new Promise<number>((resolve, reject) =>
      app.server.getConnections((error, open) => (error ? reject(error) : resolve(open))),
    );
  return { app, port: address.port, count };
}

async function open(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  sockets.push(socket);
  // A server that hangs up may do so while we write.
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

/** All that is answered to bytes, until the server closes. */
async function exchange(port: number, sent: string | Buffer): Promise<string> {
  const socket = await open(port);
  socket.write(sent);
  return readAll(socket);
}

const body = JSON.stringify({ task_type: 'chat', queue: 'sockets' });
const submit = (headers: string, content = body) =>
  `POST /api/v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${headers}\r\n${content}`;
const length = `Content-Length: ${body.length}\r\n`;
const closing = 'Connection: close\r\n';
const get = (path: string, headers = '') =>
  `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`;

function statuses(answer: string): number[] {
  return [...answer.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
}

function problemIn(answer: string): { status: number; code: string } {
  expect(answer).toContain('application/problem+json');
  return JSON.parse(answer.slice(answer.indexOf('\r\n\r\n'))) as { status: number; code: string };
}

describe('R-AD7: requests that two readers could understand differently', () => {
  let port: number;
  const tasks = async () => (await engine.listTasks({ queue: 'sockets' })).items.length;

  it.each([
    ['a length and chunks', submit(`${length}Transfer-Encoding: chunked\r\n`, '0\r\n\r\n')],
    ['two lengths', submit(`${length}Content-Length: 3\r\n`)],
    ['a length that is no number', submit('Content-Length: 0x10\r\n')],
    ['a length below zero', submit('Content-Length: -1\r\n')],
    ['a length beyond all numbers', submit(`Content-Length: ${'9'.repeat(30)}\r\n`)],
    ['chunked, but not last', submit('Transfer-Encoding: chunked, identity\r\n', '0\r\n\r\n')],
    ['a space before the colon', submit(`Content-Length : ${body.length}\r\n`)],
    ['a folded header', submit(`${length}X: a\r\n b: c\r\n`)],
    ['NUL in a header', submit(`${length}X: a\0b\r\n`)],
    ['a bare carriage return', submit(`${length}X: a\rY: b\r\n`)],
    ['a chunk size that is no number', submit('Transfer-Encoding: chunked\r\n', 'zz\r\n\r\n')],
    ['a chunk longer than it says', submit('Transfer-Encoding: chunked\r\n', '1\r\nabc\r\n')],
    ['garbage', 'no such thing\r\n\r\n'],
    ['another protocol', 'GET / HTTP/9.9\r\nHost: localhost\r\n\r\n'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['TLS', Buffer.from('16030100f8010000f40303', 'hex')],
    ['no Host', get('/healthz').replace('Host: localhost\r\n', closing)],
  ])('%s: refused, with a problem document, and nothing is done', async (_name, sent) => {
    ({ port } = await listenAsUsual());
    const before = await tasks();
    const answer = await exchange(port, sent);
    expect(statuses(answer)).toEqual([400]);
    expect(problemIn(answer)).toMatchObject({ status: 400, code: 'invalid_request' });
    expect(await tasks()).toBe(before);
  });

  it('more than its length is not taken for another request', async () => {
    ({ port } = await listenAsUsual());
    const answer = await exchange(port, `${submit(length)}${'x'.repeat(100)}\r\n\r\n`);
    expect(answer).not.toContain('HTTP/1.1 2');
  });
});

describe('R-AD7: HTTP that is rare, and right', () => {
  it.each([
    ['HTTP/1.0', 'GET /healthz HTTP/1.0\r\n\r\n', [200]],
    [
      'an upgrade, which is not offered',
      get('/healthz', `${closing}Upgrade: websocket\r\n`),
      [200],
    ],
    [
      'chunks',
      submit(
        `${closing}Transfer-Encoding: chunked\r\n`,
        `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
      ),
      [201],
    ],
    ['an expectation that nobody knows', submit(`${closing}Expect: a miracle\r\n${length}`), [201]],
    ['to be told to go on', submit(`${closing}Expect: 100-continue\r\n${length}`), [100, 201]],
    ['a HEAD', `HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n${closing}\r\n`, [200]],
    [
      'requests one behind the other',
      `${get('/healthz').repeat(20)}${get('/healthz', closing)}`,
      Array<number>(21).fill(200),
    ],
    ['an unknown method', `PROPFIND /healthz HTTP/1.1\r\nHost: localhost\r\n${closing}\r\n`, [405]],
    [
      'an address in full',
      `GET http://b/healthz HTTP/1.1\r\nHost: localhost\r\n${closing}\r\n`,
      [200],
    ],
    ['the whole server', `OPTIONS * HTTP/1.1\r\nHost: localhost\r\n${closing}\r\n`, [404]],
  ])('%s', async (_name, sent, expected) => {
    const { port } = await listenAsUsual();
    expect(statuses(await exchange(port, sent))).toEqual(expected);
  });
});

describe('R-AD7: what is too large', () => {
  it.each([
    ['headers', get('/healthz', `X: ${'a'.repeat(20_000)}\r\n`)],
    ['an address', get(`/healthz?${'a'.repeat(20_000)}`)],
    ['a crowd of headers', get('/healthz', `${'a: b\r\n'.repeat(200)}${closing}`)],
  ])('%s', async (_name, sent) => {
    const { port } = await listenAsUsual();
    const answer = await exchange(port, sent);
    expect(problemIn(answer)).toMatchObject({ status: 431, code: 'headers_too_large' });
  });

  it('chunks without an end are refused as soon as they are too many', async () => {
    const { port } = await listenAsUsual();
    const socket = await open(port);
    const received: Buffer[] = [];
    socket.on('data', (chunk) => received.push(chunk));
    socket.write(submit('Transfer-Encoding: chunked\r\n', ''));
    const chunk = `1000\r\n${' '.repeat(4_096)}\r\n`;
    const answer = () => Buffer.concat(received).toString();
    // 8 MB at most, where 256 KiB are allowed.
    for (let sent = 0; sent < 2_000 && answer() === ''; sent += 1) {
      socket.write(chunk);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await until('the whole answer', () => answer().includes('payload_too_large'));
    expect(statuses(answer())).toEqual([413]);
  });

  it('whoever sends too much hears of it, though it is still sending', async () => {
    const { port } = await listenAsUsual();
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/tasks`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: Buffer.alloc(20_000_000, ' '),
    });
    expect([answer.status, await answer.json()]).toMatchObject([
      413,
      { code: 'payload_too_large' },
    ]);
  });

  it('a packed body is refused before it is read', async () => {
    const { port } = await listenAsUsual();
    const socket = await open(port);
    socket.write(submit('Content-Encoding: gzip\r\nContent-Length: 200000\r\n', ''));
    const [first] = (await once(socket, 'data')) as [Buffer];
    expect(problemIn(first.toString())).toMatchObject({ code: 'unsupported_media_type' });
  });

  it('R-HA3: large bodies are refused when too many are under way; small ones, reads and heartbeats are not', async () => {
    const { port } = await listenAsUsual();
    const announce = async (bytes = 16_000_000): Promise<Socket> => {
      const socket = await open(port);
      socket.write(
        'POST /api/v1/tasks/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n' +
          `Content-Length: ${bytes}\r\n\r\n`,
      );
      return socket;
    };
    const answers: string[] = [];
    const announceUntilRefused = async (bytes: number): Promise<void> => {
      for (const before = answers.length; answers.length === before;) {
        const socket = await announce(bytes);
        socket.once('data', (chunk) => answers.push(chunk.toString()));
        expect(statuses(await exchange(port, submit(`${closing}${length}`)))).toEqual([201]);
        expect(sockets.length).toBeLessThan(2_000);
      }
    };
    await announceUntilRefused(16_000_000);
    await announceUntilRefused(100_000);
    expect(problemIn(answers[0] ?? '')).toMatchObject({ status: 429, code: 'refused' });
    expect(answers[0]?.toLowerCase()).toContain('retry-after: 1');
    // What keeps leases alive, and what has ended, is not held up by those who submit.
    const { workerId } = await engine.register({ taskTypes: ['t'], capacity: 5_000 });
    const currentTasks = Array.from({ length: 5_000 }, () => randomUUID());
    const beat = JSON.stringify({
      status: 'active',
      current_load: currentTasks.length,
      current_tasks: currentTasks,
    });
    expect(beat.length).toBeGreaterThan(128 * 1024);
    const sent =
      `POST /internal/workers/${workerId}/heartbeat HTTP/1.1\r\nHost: localhost\r\n` +
      `Content-Type: application/json\r\n${closing}Content-Length: ${beat.length}\r\n\r\n${beat}`;
    expect(statuses(await exchange(port, sent))).toEqual([200]);
    for (const socket of sockets) socket.destroy();
    await until('the places of those who left', async () => {
      const socket = await announce();
      const refused = once(socket, 'data').then(() => true);
      const healthy = exchange(port, get('/healthz', closing)).then(() => false);
      return !(await Promise.race([refused, healthy]));
    });
  });
});

describe('R-AD7: what is too slow', () => {
  const quick = { headersMs: 100, requestMs: 200, checkEveryMs: 20 };

  it.each([
    ['a connection that says nothing', ''],
    ['headers that stop', 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nX'],
    ['a body that stops', submit('Content-Length: 1000\r\n', '{')],
    ['chunks that stop', submit('Transfer-Encoding: chunked\r\n', '1\r\n{\r\n')],
  ])('%s', async (_name, sent) => {
    const { port, count } = await listen(quick);
    const answer = await exchange(port, sent);
    expect(problemIn(answer)).toMatchObject({ status: 408, code: 'request_timeout' });
    // Its own half stays open: the server does not wait for it.
    await until('the connection to be gone', async () => (await count()) === 0);
  });

  it('a body that drips', async () => {
    const { port, count } = await listen(quick);
    const socket = await open(port);
    socket.write(submit('Content-Length: 100000\r\n', ''));
    const dripping = setInterval(() => socket.write(' '), 10);
    const answer = await readAll(socket);
    clearInterval(dripping);
    expect(problemIn(answer)).toMatchObject({ status: 408 });
    await until('the connection to be gone', async () => (await count()) === 0);
  });

  it('who never closes after a refusal is closed', async () => {
    const { port, count } = await listenAsUsual();
    await exchange(port, 'no such thing\r\n\r\n');
    await until('the connection to be gone', async () => (await count()) === 0);
  });
});

describe('R-AD7: too many', () => {
  it('connections are told so, then cut; health is answered; places free up', async () => {
    const { port, count } = await listen({ maxConnections: 3, sparePlaces: 2 });
    const held = await Promise.all([open(port), open(port), open(port)]);
    await until('all of them', async () => (await count()) === 3);
    const answer = await exchange(port, get('/api/v1/tasks'));
    expect(problemIn(answer)).toMatchObject({ status: 429, code: 'refused' });
    expect(answer.toLowerCase()).toContain('connection: close');
    expect(statuses(await exchange(port, get('/healthz')))).toEqual([200]);
    await Promise.all([open(port), open(port)]);
    await until('the spare places', async () => (await count()) === 5);
    expect(await exchange(port, get('/healthz'))).toBe('');
    for (const socket of held) socket.destroy();
    await until('places', async () => (await count()) < 3);
    expect(statuses(await exchange(port, get('/api/v1/tasks', closing)))).toEqual([200]);
  });

  it('requests that wait one behind the other cost the connection', async () => {
    const { port, count } = await listen({ openRequests: 5 });
    const { taskId } = await engine.submit({ taskType: 'chat', queue: 'waited' });
    const wait = get(`/api/v1/tasks/${taskId}/wait?timeout_seconds=60`);
    expect(await exchange(port, wait.repeat(6))).toBe('');
    await until('the connection to be gone', async () => (await count()) === 0);
  });

  it('a connection is closed after so many requests, with the last answer', async () => {
    const { port } = await listen({ requests: 3 });
    const socket = await open(port);
    for (let requests = 0; requests < 2; requests += 1) {
      socket.write(get('/healthz'));
      const [answer] = (await once(socket, 'data')) as [Buffer];
      expect(answer.toString().toLowerCase()).toContain('connection: keep-alive');
    }
    socket.write(get('/healthz'));
    expect((await readAll(socket)).toLowerCase()).toContain('connection: close');
  });
});
