import { once } from 'node:events';
import { Agent, request, type IncomingMessage } from 'node:http';
import { Client } from 'pg';
import { expect, inject, it } from 'vitest';
import { startCli, type CliProcess } from '../support/cli.js';
import { createTestDatabase } from '../support/postgres.js';
import { getFreePort } from '../support/services/free-port.js';
import { Callers } from '../support/callers.js';
import { until } from '../support/until.js';

const drainMs = 1_500;
const env = { SLUICE_DRAIN_MS: String(drainMs), SLUICE_LOG_LEVEL: 'error' };

async function startServer(databaseUrl: string, port: number, more: string[] = []) {
  const args = ['serve', '--port', String(port), '--database-url', databaseUrl, ...more];
  const server = startCli(args, { env });
  await server.waitForLine(/^Sluice is ready at http/);
  return server;
}

interface Answer {
  readonly status: number | undefined;
  readonly connection: string | undefined;
  readonly body: string;
}

async function ask(port: number, path: string, body?: object): Promise<Answer> {
  const agent = new Agent({ keepAlive: true });
  const headers = { 'content-type': 'application/json' };
  const method = body === undefined ? 'GET' : 'POST';
  const asked = request({ host: '127.0.0.1', port, path, method, agent, headers });
  asked.end(body === undefined ? undefined : JSON.stringify(body));
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  const text = (await response.setEncoding('utf8').toArray()).join('');
  agent.destroy();
  const { statusCode: status, headers: answered } = response;
  return { status, connection: answered.connection, body: text };
}

it('R-WO8: servers that are restarted one after the other reset no connection and refuse no request', async () => {
  const database = await createTestDatabase();
  const ports = [await getFreePort(), await getFreePort()];
  const start = (port: number) =>
    startServer(database.url, port, ['--redis-url', inject('redisUrl')]);
  const servers = new Map<number, CliProcess>();
  for (const port of ports) servers.set(port, await start(port));
  const callers = new Callers(
    ports.map((port) => `http://127.0.0.1:${port}`),
    20,
  );
  try {
    for (const port of [...ports, ...ports]) {
      const before = callers.answered;
      await until('some calls', () => callers.answered > before + 200);
      await servers.get(port)?.kill('SIGTERM');
      servers.set(port, await start(port));
      await until('it to be called again', () => callers.isUsed(`http://127.0.0.1:${port}`));
    }
  } finally {
    await callers.stop();
  }
  expect(callers.failures).toEqual([]);
  expect(callers.answered).toBeGreaterThan(1_000);
  for (const server of servers.values()) await server.kill('SIGINT');
  await database.drop();
});

it('R-WO8: a server that was told to stop is not ready, ends what waits, and answers until its drain time is over', async () => {
  const database = await createTestDatabase();
  const port = await getFreePort();
  const server = await startServer(database.url, port);
  const registered = await ask(port, '/internal/workers/register', {});
  const { worker_id } = JSON.parse(registered.body) as { worker_id: string };
  const poll = { available_capacity: 1, wait_seconds: 25 };
  const waiting = ask(port, `/internal/workers/${worker_id}/poll`, poll);
  await expect(ask(port, '/readyz')).resolves.toMatchObject({
    status: 200,
    connection: 'keep-alive',
  });
  const toldAt = performance.now();
  const exited = server.kill('SIGTERM');
  await expect(waiting).resolves.toMatchObject({
    status: 200,
    connection: 'close',
    body: JSON.stringify({ tasks: [], cancelled: [], drain: false }),
  });
  expect(performance.now() - toldAt).toBeLessThan(drainMs);
  const closing = { connection: 'close' };
  await expect(ask(port, '/readyz')).resolves.toMatchObject({ status: 503, ...closing });
  const task = { task_type: 'any', parameters: {} };
  await expect(ask(port, '/api/v1/tasks', task)).resolves.toMatchObject({
    status: 201,
    ...closing,
  });
  await expect(ask(port, '/healthz')).resolves.toMatchObject({ status: 200, ...closing });
  // A poll that comes now may wait, and is answered before the server closes.
  await expect(
    ask(port, `/internal/workers/${worker_id}/poll`, { ...poll, available_capacity: 0 }),
  ).resolves.toMatchObject({ status: 200, ...closing });
  await expect(exited).resolves.toEqual({ code: 0, signal: null });
  expect(performance.now() - toldAt).toBeGreaterThanOrEqual(drainMs);
  await database.drop();
});

it('R-WO8, R-CH12: without Redis another server leads when the leader begins to drain, and both hand out work', async () => {
  const database = await createTestDatabase();
  const ports = [await getFreePort(), await getFreePort()] as const;
  const start = (port: number) =>
    startCli(['serve', '--port', String(port), '--database-url', database.url], {
      env: { ...env, SLUICE_DRAIN_MS: '60000' },
    });
  const old = start(ports[0]);
  await old.waitForLine(/^Sluice is ready at http/);
  const next = start(ports[1]);
  await next.waitForLine(/^Sluice is ready at http/);
  const [before] = await leaders(database.url);
  process.kill(old.pid, 'SIGTERM');
  await until('the other one to lead', async () => {
    const [now] = await leaders(database.url);
    return now !== undefined && now.holder !== before?.holder;
  });
  const { worker_id } = JSON.parse(
    (await ask(ports[1], '/internal/workers/register', {})).body,
  ) as { worker_id: string };
  const poll = { available_capacity: 1, wait_seconds: 25 };
  for (const port of ports) {
    const task = { task_type: 'any', parameters: {} };
    await expect(ask(ports[0], '/api/v1/tasks', task)).resolves.toMatchObject({ status: 201 });
    const polled = await ask(port, `/internal/workers/${worker_id}/poll`, poll);
    expect((JSON.parse(polled.body) as { tasks: unknown[] }).tasks).toHaveLength(1);
  }
  await old.kill('SIGTERM');
  await next.kill('SIGINT');
  await database.drop();
});

async function leaders(url: string): Promise<{ readonly holder: string }[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query('select holder from sluice.serving')).rows as { holder: string }[];
  } finally {
    await client.end();
  }
}

it.each(['SIGTERM', 'SIGINT'] as const)(
  'R-WO8: the second signal, here %s, ends a server at once',
  async (second) => {
    const database = await createTestDatabase();
    const args = ['serve', '--port', '0', '--database-url', database.url];
    const server = startCli(args, { env: { SLUICE_DRAIN_MS: '60000' } });
    await server.waitForLine(/^Sluice is ready at http/);
    process.kill(server.pid, 'SIGTERM');
    await server.waitForLine(/^Stopping/);
    await expect(server.kill(second)).resolves.toMatchObject({ code: 1 });
    await database.drop();
  },
);

it('R-WO8: Ctrl-C does not wait for a load balancer', async () => {
  const database = await createTestDatabase();
  const args = ['serve', '--port', '0', '--database-url', database.url];
  const server = startCli(args, { env: { SLUICE_DRAIN_MS: '60000' } });
  await server.waitForLine(/^Sluice is ready at http/);
  await expect(server.kill('SIGINT')).resolves.toEqual({ code: 0, signal: null });
  await database.drop();
});
