import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startRedis } from '../../../test/support/services/redis-server.js';
import { LocalBus } from '../../runtime/bus.js';
import { ManualClock } from '../../runtime/clock.js';
import { silentLog } from '../../runtime/log.js';
import { Workbench } from '../workbench.contract.js';
import { openRedis } from './connection.js';
import { RedisReadyQueue } from './redis-ready-queue.js';

const closing: (() => Promise<unknown>)[] = [];

describe('workers that name two queues and 80 task types', () => {
  const taskTypes = Array.from({ length: 80 }, (_, index) => `t${index}`);
  const queues = ['endless', 'other'];
  let bench: Workbench;

  beforeAll(async () => {
    const server = await startRedis();
    closing.push(() => server.stop());
    const connection = await openRedis(server.url, silentLog);
    closing.push(() => connection.close());
    const clock = new ManualClock();
    const prefix = 'sluice:{test}:';
    const options = { connection, bus: new LocalBus(), prefix, clock, log: silentLog };
    bench = await Workbench.open(async () => ({
      queue: new RedisReadyQueue(options),
      nowMs: () => clock.nowMs(),
      advance: (ms) => clock.advance(ms),
      driftMs: 0,
    }));
    const each = (queue: string) => taskTypes.map((taskType) => bench.task({ queue, taskType }));
    await bench.offer(...each('other'), ...each('endless'), ...each('endless'));
  }, 60_000);

  afterAll(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  it('R-CH1: are served from both, whichever they name first', async () => {
    const served = new Map<string, number>();
    const countOf = (queue: string) => served.get(queue) ?? 0;
    for (let nth = 0; nth < 100; nth += 1) {
      const [taken] = await bench.take({ queues, taskTypes, count: 1 });
      const queue = taken?.lane.queue ?? 'none';
      served.set(queue, countOf(queue) + 1);
    }
    expect(countOf('endless') + countOf('other')).toBe(100);
    // By chance fewer than 15 of 100 come once in a million million times.
    for (const queue of queues) expect(countOf(queue)).toBeGreaterThanOrEqual(15);
  });
});
