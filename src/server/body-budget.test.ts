import { once } from 'node:events';
import { connect, type AddressInfo } from 'node:net';
import fastify from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { App } from './app-parts.js';
import { BodyBudget } from './body-budget.js';

const bytes = 100_000;

describe('the room for large bodies', () => {
  const app = fastify({ bodyLimit: 2 * bytes }) as unknown as App;
  const admitted: (() => void)[] = [];
  let isHeldUp = true;
  let closed = Promise.resolve();

  beforeAll(async () => {
    // As when the key is looked up in Postgres.
    app.addHook('onRequest', async (_request, { raw }) => {
      if (!isHeldUp) return;
      closed = once(raw, 'close').then(() => undefined);
      await new Promise<void>((resolve) => admitted.push(resolve));
    });
    // One fits, and two do not.
    new BodyBudget(bytes * 0.75, 0).watch(app);
    app.post('/', () => 'read');
    await app.listen({ port: 0, host: '127.0.0.1' });
  });

  afterAll(async () => {
    await app.close();
  });

  it('R-HA2: is free again when somebody leaves before the body is asked for', async () => {
    const { port } = app.server.address() as AddressInfo;
    const socket = connect(port, '127.0.0.1');
    const heard = once(app.server, 'request');
    socket.write(`POST / HTTP/1.1\r\nhost: here\r\ncontent-length: ${bytes}\r\n\r\n`);
    await heard;
    socket.destroy();
    await closed;
    isHeldUp = false;
    for (const admit of admitted) admit();
    const answer = await fetch(`http://127.0.0.1:${port}/`, {
      method: 'POST',
      headers: { 'content-type': 'text/plain' },
      body: 'x'.repeat(bytes),
    });
    expect(answer.status).toBe(200);
  });
});
