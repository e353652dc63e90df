import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { until } from '../../test/support/until.js';
import { Lobby } from './lobby.js';

const crowd = 100;
/** Of the event loop, for each request but health checks. */
const workMs = 4;
const tasks = '/api/v1/tasks';
const poll = '/internal/workers/w/poll';

describe('the lobby', () => {
  let server: Server;
  let answered: string[];
  const clients: Socket[] = [];
  const accepted: Socket[] = [];

  beforeEach(async () => {
    answered = [];
    server = createServer((request, response) => {
      const untilMs = performance.now() + (request.url === '/healthz' ? 0 : workMs);
      while (performance.now() < untilMs);
      answered.push(request.url ?? '');
      response.end('done');
    });
    server.on('connection', (socket) => accepted.push(socket));
    new Lobby().watch({ server });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });

  afterEach(async () => {
    for (const socket of clients.splice(0)) socket.destroy();
    for (const socket of accepted.splice(0)) socket.destroy();
    server.close();
    await once(server, 'close');
  });

  async function connected(count: number): Promise<Socket[]> {
    const { port } = server.address() as AddressInfo;
    const before = accepted.length;
    const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1'));
    clients.push(...sockets);
    await until('all to be accepted', () => accepted.length === before + count);
    return sockets;
  }

  it('R-AD3: a health check over a new connection goes before a crowd that came first', async () => {
    const sockets = await connected(crowd);
    for (const socket of sockets) ask(socket, tasks);
    await until('the first to be answered', () => answered.length > 0);
    const [late] = await connected(1);
    if (late !== undefined) ask(late, '/healthz');
    await until('all to be answered', () => answered.length === crowd + 1);
    expect(answered.indexOf('/healthz')).toBeLessThan(crowd / 2);
  });

  it('R-AD3: workers go before others who wait, and do not keep them out', async () => {
    const sockets = await connected(2 * crowd);
    for (const [index, socket] of sockets.entries()) ask(socket, index < crowd ? tasks : poll);
    await until('all to be answered', () => answered.length === 2 * crowd);
    expect(answered.lastIndexOf(poll)).toBeLessThan(answered.lastIndexOf(tasks));
    const half = answered.slice(0, crowd);
    expect(half.filter((path) => path === tasks).length).toBeGreaterThan(crowd / 10);
    expect(half.filter((path) => path === poll).length).toBeGreaterThan(crowd / 2);
  });

  it('R-AD3: who left while it waited is not called', async () => {
    const [first, ...others] = await connected(crowd);
    if (first === undefined) throw new Error('a crowd is one at least');
    for (const socket of [...others, first]) ask(socket, tasks);
    await until('the first to be answered', () => answered.length > 0);
    for (const socket of others) socket.destroy();
    await once(first, 'data');
    expect(answered.length).toBeLessThan(crowd);
  });
});

function ask(socket: Socket, path: string): void {
  socket.write(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`);
}
