import { randomBytes } from 'node:crypto';
import net from 'node:net';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { until } from '../../../test/support/until.js';
import { LocalBus } from '../../runtime/bus.js';
import { silentLog } from '../../runtime/log.js';
import { Workbench } from '../workbench.contract.js';
import { openRedis } from './connection.js';
import { RedisReadyQueue } from './redis-ready-queue.js';

const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** Stands between a client and Redis. What was sent over one connection can come very late. */
async function startSlowLine() {
  const target = new URL(inject('redisUrl'));
  const slow = new Map<net.Socket, Buffer[]>();
  const server = net.createServer((client) => {
    const redis = net.connect(Number(target.port), target.hostname);
    client.on('data', (data) => {
      const late = slow.get(redis);
      if (late === undefined) redis.write(data);
      else late.push(data);
    });
    redis.on('data', (data) => client.write(data));
    for (const socket of [client, redis]) socket.on('error', () => undefined);
    redis.on('close', () => client.destroy());
    client.on('close', () => {
      if (!slow.has(redis)) redis.destroy();
      open.delete(redis);
    });
    open.add(redis);
  });
  const open = new Set<net.Socket>();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => {
    for (const redis of [...open, ...slow.keys()]) redis.destroy();
    server.close();
  });
  const { port } = server.address() as net.AddressInfo;
  return {
    url: `redis://127.0.0.1:${port}`,
    /** Of the connections that there are: a new one is as quick as ever. */
    slowDown: () => {
      for (const redis of open) slow.set(redis, []);
    },
    /** What was sent comes now, whether or not anybody still waits for the answer. */
    deliver: async () => {
      for (const [redis, late] of slow) redis.end(Buffer.concat(late));
      await Promise.all(
        [...slow.keys()].map((redis) => new Promise((resolve) => redis.once('close', resolve))),
      );
    },
  };
}

async function openQueue(url: string, prefix: string) {
  const connection = await openRedis(url, silentLog);
  const bus = new LocalBus();
  const queue = new RedisReadyQueue({ connection, bus, prefix, log: silentLog });
  closing.push(async () => {
    await queue.close();
    await connection.close();
  });
  const bench = new Workbench({
    queue,
    nowMs: () => Date.now(),
    advance: () => Promise.resolve(),
    driftMs: 0,
  });
  return { bench, queue, connection };
}

describe('requests that come late', () => {
  it.fails(
    'R-CH6: an end that was told again meanwhile frees no slot of a later taking',
    async () => {
      const line = await startSlowLine();
      const prefix = `sluice:{${randomBytes(6).toString('hex')}}:`;
      const here = await openQueue(inject('redisUrl'), prefix);
      const there = await openQueue(line.url, prefix);
      await here.bench.restore();
      const task = here.bench.task();
      await here.bench.offer(task);
      await here.bench.run();
      // Redis learns the script: a text that it does not know yet is sent in a second step.
      await here.bench.finish(here.bench.task().taskId);
      line.slowDown();
      await there.bench.finish(task.taskId);
      await until('it to be told again', async () => (await here.queue.live('q')).running === 0);
      await here.bench.offer(task);
      await here.bench.run();
      expect(await here.queue.live('q')).toMatchObject({ running: 1 });
      await line.deliver();
      expect(await here.queue.live('q')).toMatchObject({ running: 1 });
    },
  );
});
