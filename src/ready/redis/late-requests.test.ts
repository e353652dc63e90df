import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { openSlowLine } from '../../../test/support/slow-line.js';
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
  it('R-CH6: an end that was told again meanwhile frees no slot of a later taking', async () => {
    const line = await openSlowLine(inject('redisUrl'));
    closing.push(() => line.close());
    const prefix = `sluice:{${randomBytes(6).toString('hex')}}:`;
    const here = await openQueue(inject('redisUrl'), prefix);
    const there = await openQueue(line.url, prefix);
    await here.bench.restore();
    const task = here.bench.task();
    await here.bench.offer(task);
    await here.bench.run();
    // Redis learns the script: a text that it does not know yet is sent in a second step.
    await here.bench.finish(here.bench.task().taskId);
    const ends = here.bench
      .granted([task.taskId])
      .map((grant) => ({ ...grant, queue: 'q', reserved: {}, usage: null }));
    line.slowDown();
    await there.queue.finish(ends);
    await until('it to be told again', async () => (await here.queue.live('q')).running === 0);
    await here.bench.offer(task);
    await here.bench.run();
    expect(await here.queue.live('q')).toMatchObject({ running: 1 });
    await line.deliver();
    expect(await here.queue.live('q')).toMatchObject({ running: 1 });
  });
});
