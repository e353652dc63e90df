import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startRedis } from '../../../test/support/services/redis-server.js';
import { LocalBus } from '../../runtime/bus.js';
import { ManualClock } from '../../runtime/clock.js';
import { silentLog } from '../../runtime/log.js';
import type { Lane } from '../../domain/lane.js';
import type { Offer } from '../ready-queue.js';
import { Workbench } from '../workbench.contract.js';
import { openRedis } from './connection.js';
import { RedisReadyQueue } from './redis-ready-queue.js';
import { mostSteps } from './step-bound.js';
import { countSteps } from './step-count.contract.js';

const closing: (() => Promise<unknown>)[] = [];

/** A ready queue on a Redis of its own, in which every script counts what it reads and writes. */
async function openCounted() {
  const server = await startRedis();
  closing.push(() => server.stop());
  const connection = await openRedis(server.url, silentLog);
  closing.push(() => connection.close());
  const { counted, longest } = countSteps(connection);
  const clock = new ManualClock();
  const prefix = 'sluice:{test}:';
  const options = { connection: counted, bus: new LocalBus(), prefix, clock, log: silentLog };
  const bench = await Workbench.open(async () => ({
    queue: new RedisReadyQueue(options),
    nowMs: () => clock.nowMs(),
    advance: (ms) => clock.advance(ms),
    driftMs: 0,
  }));
  return { bench, longest };
}

/** As long as the wire lets a name be, with the characters that scripts use to separate. */
function hostileName(index: number): string {
  return `${'a:/.-_'.repeat(30)}${String(index).padStart(6, '0')}`;
}

/** Sets of twenty capabilities: as many as there are numbers of twenty bits. */
function hostileCapabilities(index: number): string[] {
  return twentyCapabilities.filter((_, bit) => ((index >> bit) & 1) === 1);
}

const twentyCapabilities = Array.from({ length: 20 }, (_, bit) => `c${bit}`.padEnd(12, '%'));

describe.each([
  {
    lanes: 10_000,
    by: 'task types',
    laneOf: (index: number) => ({ taskType: hostileName(index) }),
    isOrdered: true,
  },
  {
    lanes: 4_000,
    by: 'capability sets',
    laneOf: (index: number) => ({ taskType: 't', capabilities: hostileCapabilities(index) }),
    // Of more than 120 sets that a worker has, takes look at some by turns.
    isOrdered: false,
  },
])('a queue with $lanes lanes by $by', ({ lanes, laneOf, isOrdered }) => {
  let bench: Workbench;
  let longest: Awaited<ReturnType<typeof openCounted>>['longest'];
  let offers: Offer[];
  const everything = { capabilities: twentyCapabilities };

  /** What the dearest script of a call did. */
  const costOf = async (call: () => Promise<unknown>): Promise<number> => {
    longest.forget();
    await call();
    return longest.found().steps;
  };

  beforeAll(async () => {
    ({ bench, longest } = await openCounted());
    offers = Array.from({ length: lanes }, (__, index) =>
      bench.task({ queue: 'h', ...laneOf(index), cost: { tokens: 1 } }),
    );
    await bench.configure({ maxConcurrency: 2 }, 'h');
    await bench.take();
  }, 120_000);

  afterAll(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  it('R-HA3: to fill it is many short scripts', async () => {
    expect(await costOf(() => bench.offer(...offers))).toBeLessThan(mostSteps);
  }, 120_000);

  it('R-HA3: one more offer, a position and the live state look at few lanes', async () => {
    const one = bench.task({ queue: 'h', ...laneOf(lanes) });
    expect(await costOf(() => bench.offer(one))).toBeLessThan(1_000);
    const position = () => bench.queue.position(one.taskId, 1_000);
    expect(await costOf(position)).toBeLessThan(mostSteps);
    const ids = offers.slice(0, 1_000).map(({ taskId }) => taskId);
    const positions = () => Promise.all(ids.map((id) => bench.queue.position(id, 1_000)));
    expect(await costOf(positions)).toBeLessThan(mostSteps);
    expect(await costOf(() => bench.queue.live('h'))).toBeLessThan(mostSteps);
    expect((await bench.queue.live('h')).depth.medium).toBe(lanes + 1);
    expect(await costOf(() => bench.queue.remove([one.taskId]))).toBeLessThan(mostSteps);
  }, 60_000);

  it('R-CH3 R-HA3: takes look at few lanes, open or closed', async () => {
    let running: Offer['taskId'][] = [];
    const take = async (request = {}) => {
      running = await bench.takeIds({ ...everything, ...request });
    };
    expect(await costOf(() => take({ count: 1 }))).toBeLessThan(mostSteps);
    expect(running).toEqual([isOrdered ? offers[0]?.taskId : expect.any(String)]);
    const [first] = running;
    expect(await costOf(() => take({ count: 1, queues: ['h'] }))).toBeLessThan(mostSteps);
    expect(running).toEqual([isOrdered ? offers[1]?.taskId : expect.any(String)]);
    expect(await costOf(() => take({ count: 1 }))).toBeLessThan(mostSteps);
    expect(running).toEqual([]);
    expect(await costOf(() => bench.queue.finish(finishedOf(bench, first)))).toBeLessThan(
      mostSteps,
    );
    expect(await costOf(() => take({ count: 400 }))).toBeLessThan(mostSteps);
    expect(running).toEqual([isOrdered ? offers[2]?.taskId : expect.any(String)]);
  }, 60_000);

  it('R-CH3 R-HA3: work of another queue is taken past it', async () => {
    const other = bench.task({ queue: 'other', taskType: 'plain' });
    expect(await costOf(() => bench.offer(other))).toBeLessThan(1_000);
    const ids: string[] = [];
    const take = async () => ids.push(...(await bench.takeIds({ taskTypes: ['plain'] })));
    expect(await costOf(take)).toBeLessThan(mostSteps);
    expect(ids).toEqual([other.taskId]);
  }, 60_000);

  it('R-HA3: a change of its settings, and all that opens with it', async () => {
    const tokens = { unit: 'tokens', rate: 10, perSeconds: 1, burst: 1 };
    const changes = [{ maxConcurrency: null }, { maxConcurrency: 500, limits: [tokens] }];
    for (const change of changes) {
      expect(await costOf(() => bench.configure(change, 'h'))).toBeLessThan(mostSteps);
      expect(await costOf(() => bench.take({ ...everything, count: 50 }))).toBeLessThan(mostSteps);
      await bench.advance(100);
      expect(await costOf(() => bench.take({ ...everything, count: 50 }))).toBeLessThan(mostSteps);
    }
  }, 60_000);

  it('R-HA3: to age, to list and to restore it', async () => {
    await bench.advance(3_600_000);
    expect(await costOf(() => bench.take({ ...everything, count: 50 }))).toBeLessThan(mostSteps);
    const windows = offers.map(({ lane, priority }) => ({ lane, priority }));
    expect(await costOf(() => bench.queue.look(windows))).toBeLessThan(mostSteps);
    expect(await costOf(() => bench.queue.beginFeed(windows))).toBeLessThan(mostSteps);
    expect(await costOf(() => bench.queue.listBehind())).toBeLessThan(mostSteps);
    const ids = offers.map(({ taskId }) => taskId);
    expect(await costOf(() => bench.queue.missing(ids))).toBeLessThan(mostSteps);
    expect(await costOf(() => bench.queue.remove(ids.slice(lanes / 2)))).toBeLessThan(mostSteps);
    const restore = () => bench.restore({ behind: windows });
    expect(await costOf(restore)).toBeLessThan(mostSteps);
    expect(await costOf(() => bench.queue.listBehind())).toBeLessThan(mostSteps);
  }, 120_000);
});

describe('300 queues that are full, with 40 lanes each', () => {
  let bench: Workbench;
  let longest: Awaited<ReturnType<typeof openCounted>>['longest'];
  const queues = Array.from({ length: 300 }, (_, index) => `q${index}`);
  const taskTypes = Array.from({ length: 40 }, (_, index) => `t${index}`);
  let offers: Offer[];

  const costOf = async (call: () => Promise<unknown>): Promise<number> => {
    longest.forget();
    await call();
    return longest.found().steps;
  };

  beforeAll(async () => {
    ({ bench, longest } = await openCounted());
    const limits = [{ unit: 'tokens', rate: 1_000, perSeconds: 1, burst: null }];
    for (const queue of queues) await bench.configure({ maxConcurrency: 1, limits }, queue);
    offers = queues.flatMap((queue) =>
      taskTypes.map((taskType) => bench.task({ queue, taskType })),
    );
    await bench.offer(...offers);
  }, 120_000);

  afterAll(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  it('R-HA3: their positions are one short script', async () => {
    const last = queues.flatMap(
      (queue) => offers.findLast(({ lane }) => lane.queue === queue)?.taskId ?? [],
    );
    const positions = () => Promise.all(last.map((id) => bench.queue.position(id, 1_000)));
    expect(await costOf(positions)).toBeLessThan(mostSteps);
  }, 60_000);

  it('R-CH3 R-HA3: takes, ends and levels of all of them are short scripts, and miss nothing', async () => {
    for (let round = 0; round < 2; round += 1) {
      const running: { readonly taskId: Offer['taskId']; readonly lane: Lane }[] = [];
      const take = async () => running.push(...(await bench.take({ taskTypes, count: 500 })));
      // Lanes of queues that have opened are reopened by several takes.
      for (let nth = 0; nth < 50 && running.length < queues.length; nth += 1) {
        expect(await costOf(take)).toBeLessThan(mostSteps);
      }
      expect(new Set(running.map(({ lane }) => lane.queue)).size).toBe(queues.length);
      expect(await bench.take({ taskTypes, count: 100 })).toEqual([]);
      const grants = bench.granted(running.map(({ taskId }) => taskId));
      const ended = grants.map((one, nth) => ({ ...one, queue: running[nth]?.lane.queue ?? '' }));
      const finish = () =>
        bench.queue.finish(ended.map((one) => ({ ...one, reserved: {}, usage: null })));
      expect(await costOf(finish)).toBeLessThan(mostSteps);
    }
    expect(await costOf(() => bench.queue.levels())).toBeLessThan(mostSteps);
  }, 60_000);
});

describe.each([{ types: 30 }, { types: 50 }, { types: 120 }])(
  'workers that name $types task types, of several queues each',
  ({ types }) => {
    const taskTypes = Array.from({ length: types }, (_, index) => `t${index}`);
    let bench: Workbench;
    let longest: Awaited<ReturnType<typeof openCounted>>['longest'];

    beforeAll(async () => {
      ({ bench, longest } = await openCounted());
      const queues = ['a', 'b', 'c', 'd', 'e', 'f'];
      await bench.offer(
        ...queues.flatMap((queue) => taskTypes.map((taskType) => bench.task({ queue, taskType }))),
      );
    }, 60_000);

    afterAll(async () => {
      for (const close of closing.splice(0).reverse()) await close();
    });

    it.each([1, 2, 5, 20, 40])('R-CH3: get %i at once, by short scripts', async (count) => {
      longest.forget();
      expect(await bench.take({ taskTypes, count })).toHaveLength(count);
      expect(longest.found().steps).toBeLessThan(mostSteps);
    });
  },
);

function finishedOf(bench: Workbench, taskId: Offer['taskId'] | undefined) {
  if (taskId === undefined) throw new Error('one may go');
  return bench.granted([taskId]).map((one) => ({ ...one, queue: 'h', reserved: {}, usage: null }));
}
