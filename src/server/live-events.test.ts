import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyReply } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import type { TaskId } from '../domain/ids.js';
import type { TaskEvent } from '../protocol/events.js';
import { silentLog } from '../runtime/log.js';
import { until } from '../../test/support/until.js';
import type { App } from './app-parts.js';
import { buildApp } from './app.js';
import type { ConnectionLimits } from './connection-limits.js';
import { LiveEvents } from './live-events.js';

const taskId = (n: number) => `0197f0c4-8a3b-7c21-9d55-${String(n).padStart(12, '0')}` as TaskId;

function event(n: number, more: Partial<TaskEvent> = {}): TaskEvent {
  return {
    taskId: taskId(n),
    queue: 'default',
    taskType: 'chat',
    priority: 'medium',
    from: 'new',
    to: 'queued',
    at: new Date(0),
    attempt: 0,
    ...more,
  };
}

/** A server whose events the test makes, and what it writes to its streams. */
class Stage {
  readonly written: Buffer[] = [];
  writes = 0;
  #emit: (event: TaskEvent) => void = () => undefined;
  readonly #app: App;
  readonly #sockets: Socket[] = [];

  constructor(connections: Partial<ConnectionLimits> = {}) {
    this.#app = buildApp({
      api: { getStatistics: () => Promise.reject(new Error('not here')) } as never,
      health: {} as never,
      events: {
        subscribe: () => () => undefined,
        follow: ({ hear }) => {
          this.#emit = hear;
          return { changed: () => undefined, stop: () => (this.#emit = () => undefined) };
        },
      },
      metrics: {} as never,
      log: silentLog,
      connections,
    });
  }

  async listen(): Promise<void> {
    await this.#app.listen({ host: '127.0.0.1', port: 0 });
    this.#app.server.prependListener('request', (_, response: ServerResponse) => {
      const write = response.write.bind(response) as (piece: unknown) => boolean;
      response.write = ((piece: unknown) => {
        this.writes += 1;
        if (Buffer.isBuffer(piece)) this.written.push(piece);
        return write(piece);
      }) as never;
    });
  }

  emit(from: number, to: number, more: Partial<TaskEvent> = {}): void {
    for (let n = from; n < to; n += 1) this.#emit(event(n, more));
  }

  /** Everything that it was sent so far. */
  async follow(query = ''): Promise<{ socket: Socket; text: () => string }> {
    const address = this.#app.server.address() as { port: number };
    const socket = connect(address.port, '127.0.0.1');
    this.#sockets.push(socket);
    let text = '';
    socket.setEncoding('utf8').on('data', (piece: string) => (text += piece));
    socket.write(`GET /api/v1/events${query} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`);
    await until('an answer', () => text.includes('\r\n\r\n'));
    return { socket, text: () => text };
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await this.#app.close();
  }
}

const count = (text: string, part: string) => text.split(part).length - 1;
const tasksIn = (text: string) => count(text, 'event: task\n');
const missedIn = (text: string) =>
  [...text.matchAll(/event: gap\ndata: \{"missed":(\d+)\}/g)].reduce(
    (sum, [, missed]) => sum + Number(missed),
    0,
  );

it('R-HA3: many confinements among listeners are checked once for each queue, not for each event', async () => {
  let emit: (event: TaskEvent) => void = () => undefined;
  const live = new LiveEvents({
    api: { getStatistics: () => Promise.reject(new Error('not here')) },
    events: {
      subscribe: () => () => undefined,
      follow: ({ hear }) => {
        emit = hear;
        return { changed: () => undefined, stop: () => undefined };
      },
    },
    log: silentLog,
    connections: { listeners: 1_000, listenersPerKey: 1_000 },
  });
  let checks = 0;
  const counted = (pattern: string) => {
    const patterns = [pattern];
    return Object.assign(patterns, {
      some: (matches: (pattern: string) => boolean) => {
        checks += 1;
        return matches(pattern);
      },
    });
  };
  const texts: string[] = [];
  const listeners = 200;
  const ended = new AbortController();
  const server = createServer((request, raw) => {
    const queues = counted(`${request.url?.slice(1)}*`);
    const reply = { raw, request: {}, getHeaders: () => ({}) } as unknown as FastifyReply;
    live.add(reply, { queue: null, taskId: null, within: { queues, owner: null } }, ended.signal);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  for (let n = 0; n < listeners; n += 1) {
    const socket = connect(port, '127.0.0.1').setEncoding('utf8');
    socket.on('data', (piece: string) => (texts[n] = (texts[n] ?? '') + piece));
    socket.write(`GET /q${n}- HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`);
    await until('an answer', () => texts[n]?.includes('retry'));
  }
  for (let n = 0; n < 8; n += 1) emit(event(n, { queue: 'q7-a' }));
  await until('what is its own', () => tasksIn(texts[7] ?? '') === 8);
  expect(texts.filter((text) => tasksIn(text) > 0)).toHaveLength(1);
  expect(checks).toBeLessThanOrEqual(listeners);
  ended.abort();
  server.close();
  await once(server, 'close');
});

describe('live events', () => {
  let stage: Stage;
  const open = async (connections?: Partial<ConnectionLimits>) => {
    stage = new Stage(connections);
    await stage.listen();
    return stage;
  };
  afterEach(() => stage.close());

  it('R-HA3: an event is encoded once for all listeners, and many go in one write', async () => {
    const { emit, follow } = bound(await open());
    const listeners = await Promise.all(Array.from({ length: 50 }, () => follow()));
    emit(0, 50);
    await until('all events', () => listeners.every(({ text }) => tasksIn(text()) === 50));
    expect(stage.writes).toBeLessThan(4 * listeners.length);
    expect(new Set(stage.written).size).toBeLessThan(4);
    expect(missedIn(listeners[0]?.text() ?? '')).toBe(0);
  });

  it('R-HA3: a filter costs nothing but its own events', async () => {
    const { emit, follow } = bound(await open());
    const ofQueue = await follow('?queue=a');
    const ofTask = await follow(`?task_id=${taskId(1)}`);
    const ofBoth = await follow(`?queue=a&task_id=${taskId(2)}`);
    emit(0, 3, { queue: 'a' });
    emit(1, 2, { queue: 'b' });
    await until('what is theirs', () => tasksIn(ofQueue.text()) === 3);
    await until('what is theirs', () => tasksIn(ofTask.text()) === 2);
    await until('what is theirs', () => tasksIn(ofBoth.text()) === 1);
    expect(ofBoth.text()).toContain(taskId(2));
  });

  it('R-HA3: what is more than all listeners may be sent is counted in a gap', async () => {
    const { emit, follow } = bound(await open());
    const { text } = await follow();
    const reason = 'x'.repeat(1_000);
    emit(0, 5_000, { reason });
    await until('a gap', () => missedIn(text()) > 0);
    expect(tasksIn(text())).toBeGreaterThan(500);
    expect(tasksIn(text()) + missedIn(text())).toBe(5_000);
    emit(0, 1);
    await until('the next', () => tasksIn(text()) + missedIn(text()) === 5_001);
  });

  it('R-HA3: listeners that join while a batch gathers share its budget', async () => {
    const { emit, follow } = bound(await open());
    const first = await follow();
    // On a busy machine the batch may leave before the others have joined: the next one is tried then.
    for (let emitted = 1_000; ; emitted += 1_000) {
      emit(0, 1_000, { reason: 'x'.repeat(1_000) });
      const others = await Promise.all(Array.from({ length: 20 }, () => follow()));
      const isTooLate = tasksIn(first.text()) + missedIn(first.text()) === emitted;
      await until('the batch', () => tasksIn(first.text()) + missedIn(first.text()) === emitted);
      if (isTooLate) continue;
      await until('a gap', () => others.every(({ text }) => missedIn(text()) > 0));
      const bytes = others.reduce((sum, { text }) => sum + text().length, 0);
      // All listeners together get 4 MiB a second, in batches a quarter of a second apart.
      expect(bytes).toBeLessThan(1.5 * 1024 * 1024);
      break;
    }
  });

  it('R-HA3: a reader that does not read costs no memory, and learns how much it missed', async () => {
    const { emit, follow } = bound(await open());
    const { socket, text } = await follow();
    const other = await follow(`?task_id=${taskId(0)}`);
    socket.pause();
    const reason = 'x'.repeat(1_000);
    let emitted = 0;
    // More than the system holds for it: what the server wrote stays the same then.
    for (let batches = 0, before = -1; before !== stage.writes; batches += 1) {
      before = stage.writes;
      emit(1, 1_001, { reason });
      emitted += 1_000;
      await delay(600);
      expect(batches).toBeLessThan(60);
    }
    socket.resume();
    await until('a gap', () => missedIn(text()) > 0);
    emit(0, 1);
    await until('the other', () => tasksIn(other.text()) === 1);
    await until('all of it', () => tasksIn(text()) + missedIn(text()) === emitted + 1);
  });

  it('R-HA3: there are only so many listeners, and one that leaves makes room', async () => {
    const { follow } = bound(await open({ listeners: 2 }));
    const first = await follow();
    await follow();
    const refused = await follow();
    expect(refused.text()).toMatch(/^HTTP\/1\.1 429 /);
    expect(refused.text()).toContain('"code":"refused"');
    first.socket.destroy();
    await once(first.socket, 'close');
    await until('room', async () => (await follow()).text().startsWith('HTTP/1.1 200 '));
  });
});

function bound(stage: Stage) {
  return {
    emit: (...args: Parameters<Stage['emit']>) => stage.emit(...args),
    follow: (query?: string) => stage.follow(query),
  };
}
