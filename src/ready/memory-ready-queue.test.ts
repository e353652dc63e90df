import { describe, expect, it } from 'vitest';
import { defaultQueueSettings, type QueueSettings } from '../domain/queue-settings.js';
import { ManualClock } from '../runtime/clock.js';
import { Bucket } from './bucket.js';
import { Candidates } from './candidates.js';
import { countCalls } from './count-calls.contract.js';
import { IndexedHeap } from './indexed-heap.js';
import { LaneDirectory } from './lane-directory.js';
import { MemoryReadyQueue } from './memory-ready-queue.js';
import { agreeOnRandomHistories } from './random-histories.contract.js';
import { QueueState } from './queue-state.js';
import { ReadyLane } from './ready-lane.js';
import {
  describeReadyQueueContract,
  offerMaker,
  type ReadyQueueUnderTest,
} from './ready-queue.contract.js';
import type { Configuration, Offer, Taken, TakeRequest } from './ready-queue.js';
import { RoutingGroup } from './routing-group.js';

const blank = { generation: 1, limits: [], queues: [], levels: [], running: [], behind: [] };
const plainWorker: TakeRequest = { taskTypes: ['t'], capabilities: [], queues: null, count: 1 };

async function make(): Promise<ReadyQueueUnderTest> {
  const clock = new ManualClock();
  return {
    queue: new MemoryReadyQueue({ clock }),
    nowMs: () => clock.nowMs(),
    advance: (ms) => clock.advance(ms),
    driftMs: 0,
  };
}

async function makeOpen(clock = new ManualClock()): Promise<MemoryReadyQueue> {
  const queue = new MemoryReadyQueue({ clock });
  await queue.restore(blank);
  return queue;
}

function configured(
  names: readonly string[],
  settings: QueueSettings,
  pausedForMs: number | null = null,
): Configuration {
  const told = { version: 1, settings, pausedForMs, probes: null };
  return { limits: [], queues: names.map((name) => ({ name, ...told })) };
}

/** In batches, so that the offers of a million tasks are never all there at once. */
async function offerMany(
  queue: MemoryReadyQueue,
  count: number,
  makeOffer: (index: number) => Offer,
): Promise<void> {
  for (let from = 0; from < count; from += 10_000) {
    const batch = Math.min(10_000, count - from);
    await queue.offer(Array.from({ length: batch }, (_, index) => makeOffer(from + index)));
  }
}

async function takeOne(queue: MemoryReadyQueue): Promise<Taken> {
  const answer = await queue.take(plainWorker);
  const [entry] = answer.kind === 'taken' ? answer.entries : [];
  if (entry === undefined) throw new Error(`nothing was taken: ${answer.kind}`);
  return entry;
}

/** What a take can make steps over: heaps, lanes, groups, the directory. */
const parts = [IndexedHeap, ReadyLane, RoutingGroup, LaneDirectory];

async function stepsOfTakes(queue: MemoryReadyQueue, takes: number): Promise<number> {
  return countCalls(parts, async () => {
    for (let taken = 0; taken < takes; taken += 1) await takeOne(queue);
  });
}

describeReadyQueueContract('MemoryReadyQueue', make);

describe('MemoryReadyQueue', () => {
  it('R-CH10: answers random histories as a queue that sorts everything each time', async () => {
    await agreeOnRandomHistories(make, 600);
  });

  it('R-CH2: under endless high load a low task is taken at the millisecond it reached high', async () => {
    const clock = new ManualClock();
    const queue = await makeOpen(clock);
    const offer = offerMaker();
    const low = offer({ priority: 'low' });
    await queue.offer([low]);
    const ageWhenTaken = async () => {
      for (let ageMs = 0; ; ageMs += 500) {
        await queue.offer([offer({ priority: 'high' }), offer({ priority: 'high' })]);
        if ((await takeOne(queue)).taskId === low.taskId) return ageMs;
        clock.advance(500);
      }
    };
    expect(await ageWhenTaken()).toBe(30 * 60_000);
  });

  it('R-CH1, R-CH9: a million older tasks in one queue do not block its neighbour', async () => {
    const queue = await makeOpen();
    const settings = { ...defaultQueueSettings, maxReady: 1_000_000 };
    await queue.configure(configured(['huge'], settings));
    const offer = offerMaker();
    await offerMany(queue, 1_000_000, () => offer({ queue: 'huge', ageMs: 9000 }));
    await queue.offer([offer({ queue: 'small' }), offer({ queue: 'small' })]);
    expect(queue.sizes.entries).toBe(1_000_002);
    const served = [];
    for (let taken = 0; taken < 5; taken += 1) served.push((await takeOne(queue)).lane.queue);
    expect(served).toEqual(['huge', 'small', 'huge', 'small', 'huge']);
  });

  it('R-CH3: 100,000 tasks it cannot do cost a worker not one step', async () => {
    const crowded = await makeOpen();
    const quiet = await makeOpen();
    const offer = offerMaker();
    const settings = { ...defaultQueueSettings, maxReady: 1_000_000 };
    await crowded.configure(configured(['q'], settings));
    await offerMany(crowded, 100_000, () =>
      offer({ capabilities: ['gpu'], priority: 'high', ageMs: 9000 }),
    );
    for (const queue of [crowded, quiet]) {
      await queue.offer(Array.from({ length: 100 }, () => offer()));
      await takeOne(queue);
    }
    expect(await stepsOfTakes(crowded, 99)).toBe(await stepsOfTakes(quiet, 99));
    expect(await crowded.take(plainWorker)).toEqual({ kind: 'wait', waitMs: null });
  });

  it('R-CH1: 10,000 queues of one task are as cheap as one queue of 10,000', async () => {
    const many = await makeOpen();
    const one = await makeOpen();
    const offer = offerMaker();
    await offerMany(many, 10_000, (index) => offer({ queue: `q${index}` }));
    await offerMany(one, 10_000, () => offer());
    const ratio = (await stepsOfTakes(many, 9999)) / (await stepsOfTakes(one, 9999));
    expect(ratio).toBeLessThan(2);
  });

  it('R-CH9: closed queues are parked, not looked at by every take', async () => {
    const queue = await makeOpen();
    const offer = offerMaker();
    const names = Array.from({ length: 1000 }, (_, index) => `closed${index}`);
    const settings = { ...defaultQueueSettings, paused: true };
    await queue.configure(configured(names, settings));
    await queue.offer(names.map((name) => offer({ queue: name, priority: 'high' })));
    await queue.offer(Array.from({ length: 101 }, () => offer({ priority: 'low' })));
    await takeOne(queue);
    const quiet = await makeOpen();
    await quiet.offer(Array.from({ length: 101 }, () => offer({ priority: 'low' })));
    await takeOne(quiet);
    expect(await stepsOfTakes(queue, 99)).toBe(await stepsOfTakes(quiet, 99));
  });

  it('R-CH4: 10,000 queues behind one empty limit cost a take as much as ten', async () => {
    const stepsBehind = async (queues: number) => {
      const clock = new ManualClock();
      const queue = await makeOpen(clock);
      const offer = offerMaker();
      const names = Array.from({ length: queues }, (_, index) => `q${index}`);
      const settings = { ...defaultQueueSettings, limits: [{ use: 'account' }] };
      const limit = { unit: 'requests', rate: 10, perSeconds: 1, burst: 1 };
      const limits = [{ name: 'account', version: 1, limit }];
      await queue.configure({ ...configured(names, settings), limits });
      await queue.offer(names.map((name) => offer({ queue: name })));
      return countCalls([...parts, Candidates, QueueState, Bucket], async () => {
        await takeOne(queue);
        for (let take = 0; take < 5; take += 1) {
          expect(await queue.take(plainWorker)).toEqual({ kind: 'wait', waitMs: 100 });
        }
        clock.advance(100);
        await takeOne(queue);
      });
    };
    expect(await stepsBehind(10_000)).toBe(await stepsBehind(10));
  });

  it('R-CH4: 10,000 queues without tokens of their own are parked, not looked at by every take', async () => {
    const clock = new ManualClock();
    const queue = await makeOpen(clock);
    const offer = offerMaker();
    const names = Array.from({ length: 10_000 }, (_, index) => `q${index}`);
    const limits = [{ unit: 'requests', rate: 1, perSeconds: 60, burst: 1 }];
    await queue.configure(configured(names, { ...defaultQueueSettings, limits }));
    await queue.offer(names.flatMap((name) => [offer({ queue: name }), offer({ queue: name })]));
    const all = await queue.take({ ...plainWorker, count: 20_000 });
    expect(all).toMatchObject({ kind: 'taken', next: null, waitMs: 60_000 });
    const steps = await countCalls([...parts, Candidates, QueueState, Bucket], async () => {
      expect(await queue.take(plainWorker)).toEqual({ kind: 'wait', waitMs: 60_000 });
    });
    expect(steps).toBeLessThan(50);
  });

  it('forgets queues, lanes and groups that emptied long ago', async () => {
    const queue = await makeOpen();
    const offer = offerMaker();
    for (let round = 0; round < 10; round += 1) {
      const offers = Array.from({ length: 5000 }, (_, index) =>
        offer({ queue: `q${round}.${index}`, taskType: `t${round}.${index}` }),
      );
      await queue.offer(offers);
      const answer = await queue.take({ ...plainWorker, taskTypes: null, count: 5000 });
      if (answer.kind !== 'taken') throw new Error(answer.kind);
      expect(answer.entries).toHaveLength(5000);
      await queue.finish(
        offers.map(({ taskId, lane }) => ({
          taskId,
          queue: lane.queue,
          reserved: {},
          usage: null,
        })),
      );
    }
    const { entries, ...remembered } = queue.sizes;
    expect(entries).toBe(0);
    for (const size of Object.values(remembered)) expect(size).toBeLessThanOrEqual(10_000);
  });

  it('never forgets settings of its own, however long unused', async () => {
    const queue = await makeOpen();
    const offer = offerMaker();
    const settings = { ...defaultQueueSettings, paused: true };
    await queue.configure(configured(['q'], settings));
    const others = Array.from({ length: 30_000 }, (_, index) => `other${index}`);
    await queue.configure(configured(others, defaultQueueSettings));
    expect(queue.sizes.queues).toBeLessThanOrEqual(10_001);
    await queue.offer([offer()]);
    expect(await queue.take(plainWorker)).toEqual({ kind: 'wait', waitMs: null });
  });

  it('goes on ageing and keeps its pauses when the clock is set back', async () => {
    const clock = new ManualClock();
    const queue = await makeOpen(clock);
    const offer = offerMaker();
    const [aged, young] = [offer({ priority: 'low' }), offer({ priority: 'medium' })];
    await queue.offer([aged]);
    clock.advance(5 * 60_000);
    await queue.offer([young]);
    const settings = { ...defaultQueueSettings, paused: true };
    await queue.configure(configured(['q'], settings, 5 * 60_000));
    clock.advance(-60 * 60_000);
    expect(await queue.take(plainWorker)).toEqual({ kind: 'wait', waitMs: 5 * 60_000 });
    clock.advance(5 * 60_000);
    expect((await takeOne(queue)).taskId).toBe(aged.taskId);
  });
});
