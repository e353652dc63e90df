import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { afterEach, expect, it } from 'vitest';

import { startCli } from '../support/cli.js';
import { createTestDatabase } from '../support/postgres.js';

/** What the system lets any server hold. */
const systemLimit = '/proc/sys/net/core/somaxconn';
const crowd = 1_500;
const isPossible = existsSync(systemLimit) && Number(readFileSync(systemLimit, 'utf8')) > crowd;

const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

it.runIf(isPossible)('R-AD3: a crowd that comes while the server is busy is let in', async () => {
  const database = await createTestDatabase();
  const server = startCli(['serve', '--port', '0', '--database-url', database.url]);
  const [, port] = await server.waitForLine(/^Sluice is ready at http:\/\/127\.0\.0\.1:(\d+)/);
  process.kill(server.pid, 'SIGSTOP');
  try {
    const came = await Promise.all(
      Array.from({ length: crowd }, async () => {
        const socket = connect(Number(port), '127.0.0.1');
        sockets.push(socket);
        await once(socket, 'connect');
        return socket;
      }),
    );
    const [last] = came.slice(-1) as [Socket];
    last.write('GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n');
    process.kill(server.pid, 'SIGCONT');
    const [answer] = (await once(last, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 /);
  } finally {
    process.kill(server.pid, 'SIGCONT');
    for (const socket of sockets) socket.destroy();
    await server.kill('SIGTERM');
    await database.drop();
  }
});
