import { afterEach, describe, expect, it } from 'vitest';
import { askRedis, startRedis } from '../../../test/support/services/redis-server.js';
import { LocalBus } from '../../runtime/bus.js';
import { ManualClock } from '../../runtime/clock.js';
import { silentLog } from '../../runtime/log.js';
import { Workbench, type SettingsSketch } from '../workbench.contract.js';
import { openRedis } from './connection.js';
import { RedisReadyQueue } from './redis-ready-queue.js';

const closing: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** A queue on a Redis of its own, whose commands are counted: a cost without a clock. */
async function openCounted(prefix = 'sluice:{test}:') {
  const server = await startRedis();
  closing.push(() => server.stop());
  const connection = await openRedis(server.url, silentLog);
  closing.push(() => connection.close());
  const clock = new ManualClock();
  const options = { connection, bus: new LocalBus(), prefix, clock, log: silentLog };
  const bench = await Workbench.open(async () => ({
    queue: new RedisReadyQueue(options),
    nowMs: () => clock.nowMs(),
    advance: (ms) => clock.advance(ms),
    driftMs: 0,
  }));
  const countSoFar = async () => {
    const stats = String(await askRedis(server.url, 'info', 'commandstats'));
    const counts = [...stats.matchAll(/^cmdstat_(.*?):calls=(\d+)/gm)];
    return counts.reduce((sum, [, , calls]) => sum + Number(calls), 0);
  };
  const count = async (during: () => Promise<unknown>) => {
    const before = await countSoFar();
    await during();
    return (await countSoFar()) - before;
  };
  return { bench, count };
}

/** Four tasks of each type, in one queue. */
async function fill(types: number, settings: SettingsSketch = {}) {
  const counted = await openCounted();
  const { bench } = counted;
  await bench.configure(settings);
  await bench.offer(
    ...Array.from({ length: 4 * types }, (_, index) =>
      bench.task({ taskType: `t${index % types}`, cost: { tokens: 1 } }),
    ),
  );
  return counted;
}

async function countTake(types: number, count: number): Promise<number> {
  const counted = await fill(types);
  await counted.bench.take();
  return counted.count(() => counted.bench.take({ count }));
}

/** A slot is freed, taken, and the next take finds none. */
async function countSlot(types: number): Promise<number> {
  const { bench, count } = await fill(types, { maxConcurrency: 1 });
  const [first] = await bench.run();
  await bench.expectWait(null);
  if (first === undefined) throw new Error('one may go');
  return count(async () => {
    await bench.finish(first);
    expect(await bench.take()).toHaveLength(1);
    await bench.expectWait(null);
  });
}

/** A token falls due, is taken, and the next take waits for another. */
async function countToken(types: number): Promise<number> {
  const limits = [{ unit: 'tokens', rate: 10, perSeconds: 1, burst: 1 }];
  const { bench, count } = await fill(types, { limits });
  await bench.take();
  await bench.expectWait(100);
  return count(async () => {
    await bench.advance(100);
    expect(await bench.take()).toHaveLength(1);
    await bench.expectWait(100);
  });
}

describe('one queue with many lanes', () => {
  it('R-CH9: ten times the types cost a take ten times as much, not a hundred times', async () => {
    expect(await countTake(100, 1)).toBeLessThan(15 * (await countTake(10, 1)));
  });

  it('R-CH9: a take of many looks at each lane once', async () => {
    expect(await countTake(100, 50)).toBeLessThan(3 * (await countTake(100, 1)));
  });

  it('R-CH6: the same when it has slots', async () => {
    expect(await countSlot(100)).toBeLessThan(15 * (await countSlot(10)));
  });

  it('R-CH4: the same when it has limits', async () => {
    expect(await countToken(100)).toBeLessThan(15 * (await countToken(10)));
  });
});

/** Each queue has a task and gets another one; then all have one taken, and it ends. */
async function countLife(queues: number): Promise<number> {
  const { bench, count } = await openCounted();
  const names = Array.from({ length: queues }, (_, index) => `q${index}`);
  const offerToAll = () => bench.offer(...names.map((queue) => bench.task({ queue })));
  await offerToAll();
  await bench.take();
  return count(async () => {
    await offerToAll();
    const taken = await bench.take({ count: queues });
    const grants = bench.granted(taken.map(({ taskId }) => taskId));
    expect(grants).toHaveLength(queues);
    await bench.queue.confirm(grants);
    const ended = { reserved: {}, usage: null };
    await bench.queue.finish(
      grants.map((one, nth) => ({ ...one, queue: taken[nth]?.lane.queue ?? '', ...ended })),
    );
  });
}

describe('many queues', () => {
  it('R-CH9: a task in each of 1,000 takes few commands for all of them, not some for each', async () => {
    expect(await countLife(1_000)).toBeLessThan(150);
  });
});
