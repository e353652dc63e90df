import { randomBytes } from 'node:crypto';
import net from 'node:net';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { until } from '../../../test/support/until.js';
import { LocalBus } from '../../runtime/bus.js';
import { ManualClock } from '../../runtime/clock.js';
import { silentLog } from '../../runtime/log.js';
import { restore, Workbench } from '../workbench.contract.js';
import { openRedis } from './connection.js';
import { RedisReadyQueue } from './redis-ready-queue.js';

const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** Stands between a client and Redis, and can swallow what Redis answers. */
async function startProxy() {
  const target = new URL(inject('redisUrl'));
  const sockets = new Set<net.Socket>();
  let isDeaf = false;
  let swallowed = 0;
  const server = net.createServer((client) => {
    const redis = net.connect(Number(target.port), target.hostname);
    client.on('data', (data) => redis.write(data));
    redis.on('data', (data) => {
      if (isDeaf) swallowed += 1;
      else client.write(data);
    });
    for (const socket of [client, redis]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        client.destroy();
        redis.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = () => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  closing.push(() => {
    cut();
    server.close();
  });
  const { port } = server.address() as net.AddressInfo;
  return {
    url: `redis://127.0.0.1:${port}`,
    /** What is asked meanwhile is done by Redis, and the answer is lost. */
    loseAnswers: async (during: () => Promise<unknown>) => {
      isDeaf = true;
      const done = during();
      await until('an answer to be lost', () => swallowed > 0);
      cut();
      await done;
      isDeaf = false;
    },
    /** Nothing is answered until this is called with false. */
    stop: (isStopped: boolean) => {
      isDeaf = isStopped;
      if (isStopped) cut();
    },
  };
}

async function openQueue(url: string, prefix: string, clock = new ManualClock()) {
  const connection = await openRedis(url, silentLog);
  const queue = new RedisReadyQueue({
    connection,
    bus: new LocalBus(),
    prefix,
    clock,
    log: silentLog,
  });
  closing.push(async () => {
    await queue.close();
    await connection.close();
  });
  const bench = new Workbench({
    queue,
    nowMs: () => clock.nowMs(),
    advance: (ms) => clock.advance(ms),
    driftMs: 0,
  });
  return { bench, queue, connection };
}

const newPrefix = () => `sluice:{${randomBytes(6).toString('hex')}}:`;

describe('answers that are lost', () => {
  it('R-CH5: a usage whose settlement was not answered is settled once', async () => {
    const proxy = await startProxy();
    const { bench, queue, connection } = await openQueue(proxy.url, newPrefix());
    await bench.restore();
    await bench.configure({ limits: [{ unit: 'tokens', rate: 1, perSeconds: 60, burst: 1000 }] });
    const [first, second] = [400, 400].map((tokens) => bench.task({ cost: { tokens } }));
    if (first === undefined || second === undefined) throw new Error('there are two');
    await bench.offer(first, second);
    await bench.run({ count: 2 });
    // Redis learns the script: a text that it does not know yet is sent in a second step.
    await bench.finish(bench.task().taskId);
    await proxy.loseAnswers(() => bench.settle(first, { tokens: 100 }));
    await until('Redis to be back', () => connection.trouble() === null);
    // Whatever was kept is told with the first take.
    await bench.take();
    await bench.take();
    expect(await queue.live('q')).toMatchObject({ running: 1, buckets: [{ tokens: 500 }] });
  });

  it('R-CH6: an end that was said before a restore frees no slot of what was restored', async () => {
    const proxy = await startProxy();
    const prefix = newPrefix();
    const clock = new ManualClock();
    const here = await openQueue(inject('redisUrl'), prefix, clock);
    const there = await openQueue(proxy.url, prefix, clock);
    const again = here.bench.task();
    const queues = [here.bench.settings({ maxConcurrency: 1 })];
    await restore(here.bench.subject, { queues });
    proxy.stop(true);
    // Its first attempt ended there, and only Postgres knows. It runs again when Redis loses all.
    await there.bench.finish(again.taskId);
    clock.advance(1);
    await here.connection.client.hdel(`${prefix}meta`, 'generation');
    const running = [{ taskId: again.taskId, grant: '1.2', queue: 'q' }];
    await here.bench.restore({ generation: 2, queues, running });
    await here.bench.offer(here.bench.task());
    proxy.stop(false);
    await until('Redis to be back', () => there.connection.trouble() === null);
    await there.bench.take();
    expect(await here.bench.takeIds()).toEqual([]);
    await here.bench.finish(again.taskId);
    expect(await here.bench.takeIds()).toHaveLength(1);
  });
});
