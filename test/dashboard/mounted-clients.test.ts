import { once } from 'node:events';
import { createServer, request as requestOf, type IncomingMessage } from 'node:http';
import { connect as connectTcp, type AddressInfo } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { defineTask } from '../../src/client/define-task.js';
import { Sluice } from '../../src/client/sluice.js';
import type { TaskEvent } from '../../src/protocol/events.js';
import type { ProblemWire } from '../../src/protocol/problem-schema.js';
import {
  createDashboard,
  toNodeHandler,
  type DashboardOptions,
  type FetchHandler,
} from '../../src/server/dashboard/index.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { until } from '../support/until.js';

const basePath = '/admin/queues';
const origin = 'http://app.example';
const echo = defineTask({ type: 'echo', run: (input) => input });

let database: TestDatabase;
let sluice: Sluice;
beforeAll(async () => {
  database = await createTestDatabase();
  sluice = await Sluice.open({ databaseUrl: database.url });
});
afterAll(async () => {
  await sluice.close();
  await database.drop();
});

const mount = (options: Partial<DashboardOptions> = {}) =>
  createDashboard(sluice, { basePath, authorize: () => 'admin', ...options });

function open(handler: FetchHandler, path: string, init: RequestInit = {}): Promise<Response> {
  const headers = { host: 'app.example' };
  return handler(new Request(`${origin}${basePath}${path}`, { headers, ...init }));
}

async function cancelUnread({ body }: Response): Promise<void> {
  await body?.cancel();
}

/** What nobody caught: it would have ended the process of the app. */
describe('R-AD6: clients that leave', () => {
  const uncaught: unknown[] = [];
  const note = (error: unknown): void => void uncaught.push(error);
  const kinds = ['uncaughtException', 'unhandledRejection'] as const;
  const listenersBefore = new Map<string, NodeJS.UncaughtExceptionListener[]>();
  beforeEach(() => {
    uncaught.length = 0;
    for (const kind of kinds) {
      listenersBefore.set(kind, process.listeners(kind as 'uncaughtException'));
      process.removeAllListeners(kind);
      process.on(kind, note);
    }
  });
  afterEach(() => {
    for (const kind of kinds) {
      process.removeAllListeners(kind);
      for (const listener of listenersBefore.get(kind) ?? []) process.on(kind, listener);
    }
  });

  /** Streams report in later turns; 20 are more than any of them takes. */
  async function expectNothingUncaught(): Promise<void> {
    for (let turn = 0; turn < 20; turn += 1) await nextTurn();
    expect(uncaught).toEqual([]);
  }

  it.each(['/api/v1/tasks', '/api/v1/events', '/api/v1/nothing', '/nothing'])(
    'one that cancels the answer of %s before reading it',
    async (path) => {
      const handler = mount();
      for (let n = 0; n < 30; n += 1) await cancelUnread(await open(handler, path));
      await expectNothingUncaught();
    },
  );

  it.each(['/api/v1/tasks', '/api/v1/events'])(
    'one that aborts its request of %s and then cancels the answer',
    async (path) => {
      const handler = mount();
      for (let n = 0; n < 30; n += 1) {
        const leaving = new AbortController();
        const answer = await open(handler, path, { signal: leaving.signal });
        leaving.abort();
        await cancelUnread(answer).catch(() => undefined);
      }
      await expectNothingUncaught();
    },
  );

  it('one that cancels while it waits for the next event', async () => {
    const answer = await open(mount(), '/api/v1/events?queue=quiet');
    const reader = answer.body?.getReader();
    await reader?.read();
    const waiting = reader?.read();
    await reader?.cancel();
    expect((await waiting)?.done).toBe(true);
    await expectNothingUncaught();
  });

  it.each(['/api/v1/tasks', '/api/v1/events'])(
    'one that has left %s before authorize answered',
    async (path) => {
      for (let n = 0; n < 10; n += 1) {
        const leaving = new AbortController();
        const authorize = async () => {
          leaving.abort();
          return Promise.resolve('read' as const);
        };
        await open(mount({ authorize }), path, { signal: leaving.signal }).catch(() => undefined);
      }
      await expectNothingUncaught();
    },
  );

  it('through toNodeHandler, at any moment', async () => {
    const server = await listen(mount());
    for (const path of ['/api/v1/tasks', '/api/v1/events', '/nothing']) {
      for (let n = 0; n < 30; n += 1) {
        const socket = connectTcp(server.port, '127.0.0.1');
        socket.on('error', () => undefined);
        await once(socket, 'connect');
        socket.write(`GET ${basePath}${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
        for (let turn = 0; turn < n; turn += 1) await nextTurn();
        socket.destroy();
        await once(socket, 'close');
      }
    }
    await server.close();
    await expectNothingUncaught();
  });
});

interface Server {
  readonly port: number;
  readonly url: string;
  readonly failures: readonly unknown[];
  readonly close: () => Promise<void>;
}

/** As `node:http` and Express call it: with a `next` that hears of failures. */
async function listen(handler: FetchHandler): Promise<Server> {
  const handle = toNodeHandler(handler);
  const failures: unknown[] = [];
  const server = createServer((request, response) => {
    void handle(request, response, (error) => {
      failures.push(error);
      response.writeHead(500).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const close = async () => {
    const closed = once(server.close(), 'close');
    server.closeAllConnections();
    await closed;
  };
  return { port, url: `http://127.0.0.1:${port}${basePath}`, failures, close };
}

describe('R-HA3: places of those who follow events', () => {
  it.each<readonly [string, (answer: Response, leaving: AbortController) => Promise<unknown>]>([
    ['cancelled unread', cancelUnread],
    ['read, then cancelled', readThenCancel],
    [
      'aborted',
      async (_, leaving) => {
        leaving.abort();
        return Promise.resolve();
      },
    ],
  ])('600 streams that were %s leave room for more', async (_, leave) => {
    const handler = mount();
    for (let n = 0; n < 600; n += 1) {
      const leaving = new AbortController();
      const answer = await open(handler, '/api/v1/events', { signal: leaving.signal });
      expect([n, answer.status]).toEqual([n, 200]);
      await leave(answer, leaving);
    }
  });

  it('600 clients that left toNodeHandler leave room for more', async () => {
    const server = await listen(mount());
    for (let n = 0; n < 600; n += 1) {
      const request = requestOf(`${server.url}/api/v1/events`, { agent: false }).end();
      const [answer] = (await once(request, 'response')) as [IncomingMessage];
      expect([n, answer.statusCode]).toEqual([n, 200]);
      const closed = new Promise((resolve) => answer.once('close', resolve));
      answer.on('error', () => undefined);
      request.destroy();
      await closed;
    }
    await server.close();
  });

  it('each viewer has places of their own', async () => {
    const named = (request: Request) => ({
      role: 'read' as const,
      name: request.headers.get('x-user') ?? 'nobody',
    });
    const handler = mount({ authorize: named });
    const openAs = (name: string) =>
      open(handler, '/api/v1/events', { headers: { host: 'app.example', 'x-user': name } });
    const followed: Response[] = [];
    for (let n = 0; n < 500; n += 1) followed.push(await openAs('Ada'));
    expect((await openAs('Ada')).status).toBe(429);
    const other = await openAs('Grace');
    expect(other.status).toBe(200);
    for (const answer of [...followed, other]) await cancelUnread(answer);
    const again = await openAs('Ada');
    expect(again.status).toBe(200);
    await cancelUnread(again);
  });
});

const sizeOf = (chunk: unknown): number => (chunk as Uint8Array).length;

async function readThenCancel({ body }: Response): Promise<void> {
  const reader = body?.getReader();
  await reader?.read();
  await reader?.cancel();
}

describe('R-HA3: a slow reader of events', () => {
  it('is told how many it missed, instead of all of them being kept for it', async () => {
    let hear: (event: TaskEvent) => void = () => undefined;
    const events = {
      follow: (follower: { hear(event: TaskEvent): void }) => {
        hear = (event) => follower.hear(event);
        return { changed: () => undefined, stop: () => undefined };
      },
    };
    const dashboard = createDashboard(
      { api: sluice.api, events },
      { basePath, authorize: () => 'read' },
    );
    const seen: TaskEvent[] = [];
    const following = sluice.events?.follow({
      hear: (event) => void seen.push(event),
      missed: () => undefined,
      followed: () => [{ queue: null, taskId: null }],
    });
    const submitted = await sluice.submit(echo, {}, { queue: 'slow' });
    const event = await until('an event', () => seen.find(({ taskId }) => taskId === submitted.id));
    following?.stop();

    const slow = (await open(dashboard, '/api/v1/events?queue=slow')).body?.getReader();
    const quick = (await open(dashboard, '/api/v1/events?queue=slow')).body?.getReader();
    let read = 0;
    let batches = 0;
    const reading = (async () => {
      for (let chunk = await quick?.read(); chunk?.done === false; chunk = await quick?.read()) {
        read += sizeOf(chunk.value);
        batches += 1;
      }
    })();
    // Each batch of the quick one is as large as the slow one's: 20 times what may be unread.
    while (read < 5 * 1024 * 1024) {
      const before = batches;
      for (let n = 0; n < 5_000; n += 1) hear(event);
      await until('the next batch', () => batches > before);
    }
    await quick?.cancel();
    await reading;

    const last = { ...event, taskId: (await sluice.submit(echo, {}, { queue: 'slow' })).id };
    let kept = 0;
    let text = '';
    while (!text.includes(last.taskId)) {
      hear(last);
      const chunk = await slow?.read();
      if (chunk?.done !== false) throw new Error('the slow one was cut off');
      kept += sizeOf(chunk.value);
      text = Buffer.from(chunk.value).toString();
    }
    await slow?.cancel();
    expect(kept).toBeLessThan(read / 4);
  });
});

describe('R-AD6: odd requests through toNodeHandler', () => {
  let server: Server;
  beforeAll(async () => {
    server = await listen(mount());
  });
  afterAll(async () => {
    await server.close();
    expect(server.failures).toEqual([]);
  });

  /** Status line and body, as they came: `fetch` would tidy the address before. */
  async function raw(line: string, more = ''): Promise<string> {
    const socket = connectTcp(server.port, '127.0.0.1');
    socket.on('error', () => undefined);
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.write(`${line} HTTP/1.1\r\nHost: app.example\r\nConnection: close\r\n${more}\r\n`);
    await once(socket, 'close');
    return Buffer.concat(chunks).toString();
  }
  const statusOf = (answer: string) => Number(answer.split(' ')[1]);

  it.each([
    ['HEAD', '/api/v1/queues', 200],
    ['HEAD', '/api/v1/events', 405],
    ['OPTIONS', '/api/v1/queues', 204],
    ['OPTIONS', '/api/v1/nothing', 404],
    ['PROPFIND', '/api/v1/queues', 405],
    ['TRACE', '/api/v1/queues', 400],
    ['GET', '/../../etc/passwd', 404],
    ['GET', '/%2e%2e/%2e%2e/metrics', 404],
    ['GET', '/api/v1/../../metrics', 404],
    ['GET', '/api/v1/..%2f..%2fmetrics', 404],
    ['GET', '/api/v1/queues/%zz', 400],
    ['GET', '/api/v1/queues/a%2fb', 404],
  ])('%s %s: %i', async (method, path, status) => {
    const answer = await raw(`${method} ${basePath}${path}`);
    const [head = '', body = ''] = answer.split('\r\n\r\n');
    expect([statusOf(answer), head]).toEqual([status, expect.not.stringContaining('500')]);
    if (method === 'HEAD' || status < 400) return;
    expect(body).toContain('"detail"');
  });

  it.each(['//[', '//', 'http://[/', '//x:99999999/'])('GET %s: 400', async (address) => {
    expect(statusOf(await raw(`GET ${address}`))).toBe(400);
  });

  it('a body that is too long: 413, also while it is still sent', async () => {
    const request = requestOf(`${server.url}/api/v1/tasks`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' },
    });
    request.on('error', () => undefined);
    request.write(Buffer.alloc(3 * 1024 * 1024, 'a'));
    const [answer] = (await once(request, 'response')) as [IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of answer) chunks.push(chunk as Buffer);
    const problem = JSON.parse(Buffer.concat(chunks).toString()) as ProblemWire;
    expect([answer.statusCode, problem.code]).toEqual([413, 'payload_too_large']);
    request.destroy();
  });
});
