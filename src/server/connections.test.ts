import { once } from 'node:events';
import { connect, type AddressInfo, type Socket } from 'node:net';
import fastify from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AnswerBudget } from '../engine/answer-budget.js';
import { countAnswers } from './answers.js';
import type { App } from './app-parts.js';
import { BodyBudget } from './body-budget.js';
import { connectionLimits } from './connection-limits.js';
import { Connections } from './connections.js';

const bytes = 100_000;

describe('requests that wait behind another one of their connection', () => {
  const app = fastify({ bodyLimit: 2 * bytes }) as unknown as App;
  const answers = new AnswerBudget();
  let port: number;

  beforeAll(async () => {
    new Connections({ ...connectionLimits, turnMs: 2_000 }).watch(app);
    // One fits, and two do not.
    new BodyBudget(bytes * 0.75, 0).watch(app);
    countAnswers(app, answers);
    app.get('/never', () => new Promise(() => undefined));
    app.get('/large', () => 'x'.repeat(bytes));
    app.post('/', () => 'read');
    await app.listen({ port: 0, host: '127.0.0.1' });
    ({ port } = app.server.address() as AddressInfo);
  });

  afterAll(async () => {
    await app.close();
  });

  const post = async () => {
    const headers = { 'content-type': 'text/plain' };
    const body = 'x'.repeat(bytes);
    return (await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body })).status;
  };

  /** Behind a request that is never answered. Leaves when `isHeld`. */
  async function sendAndLeave(request: string, isHeld: () => Promise<boolean>): Promise<void> {
    const connected = once(app.server, 'connection') as Promise<[Socket]>;
    const socket = connect(port, '127.0.0.1');
    const [ofServer] = await connected;
    socket.write(`GET /never HTTP/1.1\r\nhost: here\r\n\r\n${request}`);
    await expect.poll(isHeld).toBe(true);
    const closed = new Promise((resolve) => ofServer.once('close', resolve));
    socket.destroy();
    await closed;
  }

  it('R-HA2: leave room for large bodies when their client leaves', async () => {
    const head = `POST / HTTP/1.1\r\nhost: here\r\ncontent-type: text/plain\r\ncontent-length: ${bytes}\r\n\r\n`;
    await sendAndLeave(head, async () => (await post()) === 429);
    expect(await post()).toBe(200);
  });

  it('R-HA2: leave room for large answers when their client leaves', async () => {
    const { room } = answers;
    const request = 'GET /large HTTP/1.1\r\nhost: here\r\n\r\n';
    await sendAndLeave(request, async () => answers.room < room);
    expect(answers.room).toBe(room);
  });

  it('R-HA2: do not wait for ever', async () => {
    const socket = connect(port, '127.0.0.1');
    const get = 'GET /never HTTP/1.1\r\nhost: here\r\n\r\n';
    const closed = once(socket, 'close');
    socket.write(get + get);
    await closed;
  });
});
