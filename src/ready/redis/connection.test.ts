import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { pino } from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import { createTestRedis } from '../../../test/support/redis.js';
import { getFreePort } from '../../../test/support/services/free-port.js';
import { startRedisCluster } from '../../../test/support/services/redis-cluster.js';
import { startSentinel } from '../../../test/support/services/redis-sentinel.js';
import {
  askRedis,
  startRedis,
  type RunningRedis,
} from '../../../test/support/services/redis-server.js';
import { until } from '../../../test/support/until.js';
import { silentLog } from '../../runtime/log.js';
import { openRedis, RedisRefusedError, type RedisConnection } from './connection.js';

const closing: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function ownRedis(args: readonly string[] = []): Promise<RunningRedis> {
  const server = await startRedis({ args });
  closing.push(() => server.stop());
  return server;
}

async function open(url: string, log = silentLog): Promise<RedisConnection> {
  const connection = await openRedis(url, log);
  closing.push(() => connection.close());
  return connection;
}

/** Keeps the lines that a person would read. */
function keptLog() {
  const lines: { msg: string; reason?: string }[] = [];
  const log = pino(
    { level: 'info' },
    {
      write: (line: string) => lines.push(JSON.parse(line) as { msg: string }),
    },
  );
  return { log, lines };
}

describe('a standalone Redis', () => {
  it('answers', async () => {
    const redis = await createTestRedis();
    closing.push(() => redis.close());
    const { client, trouble } = await open(redis.url).then((connection) => ({
      client: connection.client,
      trouble: connection.trouble(),
    }));
    expect(trouble).toBeNull();
    await client.set(`${redis.prefix}a`, '1');
    expect(await redis.client.get(`${redis.prefix}a`)).toBe('1');
  });

  it('that is away: opening tells why, and it is found when it comes', async () => {
    const port = await getFreePort();
    const { log, lines } = keptLog();
    const connection = await open(`redis://:secret@127.0.0.1:${port}`, log);
    expect(connection.trouble()).toMatch(/redis:\/\/:\*\*\*@127.* ECONNREFUSED/);
    await expect(connection.client.get('a')).rejects.toThrow();
    let returns = 0;
    connection.onReturn(() => (returns += 1));
    const server = await startRedis({ port, args: ['--requirepass', 'secret'] });
    closing.push(() => server.stop());
    await until('the return', () => returns === 1);
    expect(connection.trouble()).toBeNull();
    expect(lines.map(({ msg }) => msg)).toEqual(['Redis is away', 'Redis answers again']);
    expect(JSON.stringify(lines)).not.toContain('secret');
  });

  it('R-RE7: killed and started again: what was under way fails, once it is back it works', async () => {
    const server = await ownRedis();
    const connection = await open(server.url);
    const returned: (string | null)[] = [];
    connection.onReturn(() => returned.push(connection.trouble()));
    const underWay = expect(connection.client.blpop('nothing', 0)).rejects.toThrow();
    await server.kill('SIGKILL');
    await underWay;
    await until('the trouble', () => connection.trouble());
    // At once: it is not sent, and waits for no answer.
    await expect(connection.client.get('a')).rejects.not.toThrow('timed out');
    expect(returned).toEqual([]);
    await server.restart();
    await until('the return', () => returned.length === 1);
    expect(returned).toEqual([null]);
    expect(await connection.client.ping()).toBe('PONG');
  });

  it('that hangs: a command fails after two seconds and the trouble is told', async () => {
    const server = await ownRedis();
    const connection = await open(server.url);
    await server.kill('SIGSTOP');
    const startedAt = performance.now();
    await expect(connection.client.get('a')).rejects.toThrow('timed out');
    expect(performance.now() - startedAt).toBeLessThan(30_000);
    await until('the trouble', () => connection.trouble());
    await server.kill('SIGCONT');
    await until('the return', () => connection.trouble() === null);
  });

  it('with a wrong password: the reason is told, the password is not', async () => {
    const server = await ownRedis(['--requirepass', 'right']);
    const connection = await open(server.url.replace('//', '//:wrong@'));
    expect(connection.trouble()).toContain('WRONGPASS');
    expect(connection.trouble()).not.toContain('wrong@');
  });

  it('R-HA5: that may evict keys is refused at the start, with what to do', async () => {
    const server = await ownRedis(['--maxmemory-policy', 'allkeys-lru']);
    await expect(openRedis(server.url, silentLog)).rejects.toThrow(RedisRefusedError);
    await expect(openRedis(server.url, silentLog)).rejects.toThrow(
      /maxmemory-policy is allkeys-lru.*config set maxmemory-policy noeviction/,
    );
  });

  it('R-HA5: that evicts only keys which expire is accepted: ours do not', async () => {
    const server = await ownRedis(['--maxmemory-policy', 'volatile-lru']);
    expect((await open(server.url)).trouble()).toBeNull();
  });

  it('R-HA5: that may evict keys later is warned of, once', async () => {
    const server = await ownRedis();
    const { log, lines } = keptLog();
    const connection = await open(server.url, log);
    await askRedis(server.url, 'config', 'set', 'maxmemory-policy', 'allkeys-lru');
    await askRedis(server.url, 'client', 'kill', 'type', 'normal');
    await until('the warning', () => lines.some((line) => 'maxmemory_policy' in line));
    await until('the return', () => connection.trouble() === null);
    expect(lines.filter((line) => 'maxmemory_policy' in line)).toEqual([
      expect.objectContaining({
        maxmemory_policy: 'allkeys-lru',
        msg: expect.any(String) as string,
      }),
    ]);
  });

  it('that is too old is refused, naming its version', async () => {
    const url = await pretendRedis('6.0.16');
    await expect(openRedis(url, silentLog)).rejects.toThrow(RedisRefusedError);
    await expect(openRedis(url, silentLog)).rejects.toThrow(/6\.0\.16 is too old.*6\.2 or later/);
  });

  it('closing ends it whatever state it is in, also twice', async () => {
    const server = await ownRedis();
    const connection = await openRedis(server.url, silentLog);
    connection.subscriber();
    await Promise.all([connection.close(), connection.close()]);
    expect(connection.client.status).toBe('end');
    await server.kill('SIGKILL');
    const away = await openRedis(server.url, silentLog);
    away.subscriber();
    await away.close();
    await expect(away.client.get('a')).rejects.toThrow();
  });
});

describe('R-CH14: Sentinel', () => {
  it('finds the master, and the new one after a failover', async () => {
    const sentinel = await startSentinel();
    closing.push(() => sentinel.stop());
    const connection = await open(sentinel.url);
    expect(connection.trouble()).toBeNull();
    await connection.client.set('a', 'before');
    await connection.client.wait(1, 1_000);

    await sentinel.master.kill('SIGKILL');
    await until('the trouble', () => connection.trouble());
    await until('the return', () => connection.trouble() === null);
    expect(await connection.client.get('a')).toBe('before');
    await connection.client.set('a', 'after');
    expect(await connection.client.info('server')).toContain(`tcp_port:${sentinel.replica.port}`);
  });
});

describe('R-CH14: Cluster', () => {
  it('reaches all slots, tells when a node is gone, and goes on when it is back', async () => {
    const cluster = await startRedisCluster();
    closing.push(() => cluster.stop());
    const connection = await open(cluster.url);
    expect(connection.trouble()).toBeNull();
    const keys = Array.from({ length: 50 }, (_, index) => `key:${index}`);
    await Promise.all(keys.map((key) => connection.client.set(key, key)));
    expect(await Promise.all(keys.map((key) => connection.client.get(key)))).toEqual(keys);

    let returns = 0;
    connection.onReturn(() => (returns += 1));
    const [node] = cluster.nodes;
    await node?.kill('SIGKILL');
    await until('the trouble', () => connection.trouble());
    await node?.restart();
    await until('the return', () => returns > 0);
    await Promise.all(keys.map((key) => connection.client.set(key, 'again')));
  });
});

/** Says what a Redis of that version would say about itself; no such old one can be installed. */
async function pretendRedis(version: string): Promise<string> {
  const info = `redis_version:${version}\r\nrole:master\r\nmaxmemory_policy:noeviction\r\n`;
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      for (const [, command = ''] of data.toString().matchAll(/\*\d+\r\n\$\d+\r\n(\w+)\r\n/g)) {
        if (command === 'quit') socket.end('+OK\r\n');
        else socket.write(command === 'info' ? `$${info.length}\r\n${info}\r\n` : '+OK\r\n');
      }
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(async () => server.close());
  return `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
