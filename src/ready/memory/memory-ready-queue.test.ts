import { beforeEach, describe, expect, it } from 'vitest';
import { heapBytes } from '../../../test/support/heap-bytes.js';
import type { TaskId } from '../../domain/ids.js';
import type { Priority } from '../../domain/priority.js';
import { defaultQueueSettings, type QueueSettings } from '../../domain/queue-settings.js';
import { ManualClock } from '../../runtime/clock.js';
import { Bucket } from './bucket.js';
import { Walk } from './walk.js';
import { countCalls } from '../count-calls.contract.js';
import { IndexedHeap } from '../indexed-heap.js';
import { LaneDirectory } from './lane-directory.js';
import { MemoryReadyQueue } from './memory-ready-queue.js';
import { agreeOnRandomHistories } from '../random-histories.contract.js';
import { QueueState } from './queue-state.js';
import { ReadyLane } from './ready-lane.js';
import {
  describeReadyQueueContract,
  offerMaker,
  type ReadyQueueUnderTest,
} from '../ready-queue.contract.js';
import type { Configuration, Newcomer, Offer, Taken, TakeRequest } from '../ready-queue.js';
import { RoutingGroup } from './routing-group.js';
import { WildcardLane } from './wildcard-lane.js';
import { Workbench } from '../workbench.contract.js';

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

/** As many as are named. */
function times<Made>(count: 2, make: () => Made): [Made, Made];
function times<Made>(count: 3, make: () => Made): [Made, Made, Made];
function times<Made>(count: 4, make: () => Made): [Made, Made, Made, Made];
function times<Made>(count: number, make: () => Made): Made[] {
  return Array.from({ length: count }, make);
}

function idsOf(...tasks: readonly { readonly taskId: TaskId }[]): TaskId[] {
  return tasks.map(({ taskId }) => taskId);
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

/** Of five: what else is on the heap comes and goes. */
async function medianBytes(measure: () => Promise<number>): Promise<number> {
  const measured: number[] = [];
  for (let round = 0; round < 5; round += 1) measured.push(await measure());
  return measured.sort((a, b) => a - b)[2] ?? NaN;
}

async function bytesHeldBy(tasks: number, queues: number): Promise<number> {
  const before = heapBytes();
  const queue = await makeOpen();
  const offer = offerMaker();
  await offerMany(queue, tasks, (index) => offer({ queue: `q${index % queues}` }));
  const held = heapBytes() - before;
  expect(queue.sizes).toMatchObject({ entries: tasks, queues });
  return held;
}

describeReadyQueueContract('MemoryReadyQueue', make);

describe('MemoryReadyQueue', () => {
  it('R-CH10: answers random histories as a queue that sorts everything each time', async () => {
    await agreeOnRandomHistories(make, 600, { announces: true });
  });

  describe('what is announced', () => {
    let bench: Workbench;

    beforeEach(async () => {
      bench = await Workbench.open(make);
    });

    const announce = (...newcomers: Newcomer[]) => bench.queue.announce(newcomers);
    const look = async (priority: Priority = 'medium') => {
      const lane = { queue: 'q', taskType: 't', capabilities: [] };
      const [found] = await bench.queue.look([{ lane, priority }]);
      return { room: found?.room, left: found?.left?.from ?? null };
    };

    it('R-CH1: is taken last of its window, in the order in which it was announced', async () => {
      const [first, second, third, offered] = times(4, () => bench.task());
      expect(await announce(first, second)).toEqual(idsOf(first, second));
      await bench.offer(offered);
      expect(await announce(third)).toEqual(idsOf(third));
      expect(await bench.takeIds({ count: 5 })).toEqual(idsOf(offered, first, second, third));
    });

    it('R-CH4: goes into no window in which something waits: nobody took that either', async () => {
      await bench.offer(bench.task());
      const wakes = await bench.listen(async () => {
        expect(await announce(bench.task())).toEqual([]);
      });
      expect(wakes).toEqual([]);
      expect(await announce(bench.task({ priority: 'high' }))).toHaveLength(1);
      await bench.takeIds({ count: 2 });
      expect(await announce(bench.task())).toHaveLength(1);
    });

    it('R-CH1: is taken before what is less urgent, and after what is more so', async () => {
      const task = (priority: Priority) => bench.task({ priority });
      const [low, high, newcomer] = [task('low'), task('high'), task('medium')];
      await bench.offer(low, high);
      await announce(newcomer);
      expect(await bench.takeIds({ count: 3 })).toEqual(idsOf(high, newcomer, low));
    });

    it('R-CH8: goes into no window that is full, one by one, and pushes nobody out', async () => {
      await bench.configure({ maxReady: 2 });
      const [first, second, third] = times(3, () => bench.task());
      expect(await announce(first, second, third)).toEqual(idsOf(first, second));
      expect(await look()).toEqual({ room: 0, left: null });
      expect(await announce(bench.task({ priority: 'low' }))).toHaveLength(1);
      expect(await bench.takeIds({ count: 5, queues: ['q'] })).toHaveLength(3);
    });

    it('R-CH8: goes into no window that is behind, however much room it has', async () => {
      await bench.configure({ maxReady: 1 });
      const [held, left] = times(2, () => bench.task());
      await bench.offer(held, left);
      await bench.takeIds();
      expect(await look()).toMatchObject({ room: 1, left: { seq: left.seq } });
      expect(await announce(bench.task())).toEqual([]);
      expect(await bench.takeIds()).toEqual([]);
    });

    it('R-CH8: makes room for what is in line, and leaves no trace of itself there', async () => {
      await bench.configure({ maxReady: 2 });
      const [newcomer, other, ...line] = times(4, () => bench.task());
      await announce(newcomer, other);
      expect(await bench.offer(...line)).toEqual(['accepted', 'accepted']);
      expect(await look()).toEqual({ room: 0, left: null });
      expect(await bench.queue.listBehind()).toEqual([]);
      expect(await bench.queue.missing(idsOf(newcomer, other))).toHaveLength(2);
      // It was never in line: once it is written, it is offered as any other.
      expect(await bench.offer({ ...newcomer, seq: 9 })).toEqual(['left']);
      expect(await look()).toMatchObject({ left: { seq: 9 } });
    });

    it('R-CH8: taken back, it was never there', async () => {
      const before = await look();
      const [newcomer, other] = times(2, () => bench.task());
      await announce(newcomer, other);
      await bench.takeIds();
      await bench.queue.remove(idsOf(newcomer, other));
      await bench.refund(newcomer.taskId);
      expect(await look()).toEqual(before);
      expect(await bench.queue.missing(idsOf(newcomer, other))).toHaveLength(2);
      expect(await bench.queue.listOut(null, 5)).toEqual({ entries: [], next: null });
      expect(await bench.offer(newcomer, other)).toEqual(['accepted', 'accepted']);
      expect(await bench.takeIds({ count: 2 })).toEqual(idsOf(newcomer, other));
    });

    it('R-CH1: wakes as many as went in, for each lane', async () => {
      await bench.configure({ maxReady: 2 });
      const [a, b, c] = times(3, () => bench.task());
      const other = bench.task({ taskType: 'other' });
      const wakes = await bench.listen(() => announce(a, b, c, other));
      expect(wakes).toEqual([
        { lanes: [a.lane], count: 2 },
        { lanes: [other.lane], count: 1 },
      ]);
    });

    it('R-CH6: takes a slot when it is taken, and gives it back when it is refunded', async () => {
      await bench.configure({ maxConcurrency: 1 });
      const [newcomer, other] = times(2, () => bench.task());
      await announce(newcomer, other);
      expect(await bench.takeIds({ count: 2 })).toEqual(idsOf(newcomer));
      await bench.queue.remove(idsOf(newcomer, other));
      await bench.offer(other);
      expect(await bench.takeIds()).toEqual([]);
      const wakes = await bench.listen(() => bench.refund(newcomer.taskId));
      expect(wakes).toEqual([{ lanes: [other.lane], count: 1 }]);
      expect(await bench.run()).toEqual(idsOf(other));
      expect((await bench.queue.live('q')).running).toBe(1);
    });

    it('R-CH5: pays what it costs, waits while it is short, and then holds up nobody', async () => {
      const limits = [{ unit: 'tokens', rate: 10, perSeconds: 3_600, burst: 10 }];
      await bench.configure({ limits });
      const cost = (tokens: number) => bench.task({ cost: { tokens } });
      const [dear, dearer] = [cost(7), bench.task({ priority: 'high', cost: { tokens: 8 } })];
      const left = async () => (await bench.queue.live('q')).buckets[0]?.tokens;
      await announce(dear);
      expect(await bench.takeIds()).toEqual(idsOf(dear));
      expect(await left()).toBe(3);
      await announce(dearer);
      const cheap = cost(2);
      await bench.offer(cheap);
      expect(await bench.takeIds()).toEqual([]);
      const wakes = await bench.listen(() => bench.queue.remove(idsOf(dearer)));
      expect(wakes).toEqual([{ lanes: [cheap.lane], count: 1 }]);
      expect(await bench.takeIds()).toEqual(idsOf(cheap));
      // To a bucket that nothing was taken from since.
      expect(await left()).toBe(1);
      await bench.refund(cheap.taskId);
      expect(await left()).toBe(3);
    });

    it('R-RE9: is a probe where a circuit lets only those through, and none if it is refunded', async () => {
      await bench.configure({ probes: 1 });
      const [newcomer, other] = times(2, () => bench.task());
      await announce(newcomer, other);
      expect(await bench.takeIds({ count: 2 })).toEqual(idsOf(newcomer));
      await bench.expectWait(null);
      await bench.refund(newcomer.taskId);
      expect(await bench.takeIds({ count: 2 })).toEqual(idsOf(other));
    });

    it('R-CH7: is not taken from a queue that is paused', async () => {
      await bench.configure({ paused: true });
      expect(await announce(bench.task())).toHaveLength(1);
      await bench.expectWait(null);
    });

    it('R-RE7: is nowhere once the queue is filled anew, and not taken in before', async () => {
      const newcomer = bench.task();
      await announce(newcomer);
      await bench.takeIds();
      await bench.queue.beginRestore(2);
      expect(await announce(bench.task())).toEqual([]);
      await bench.restore();
      await bench.refund(newcomer.taskId);
      expect(await bench.offer(newcomer)).toEqual(['accepted']);
      expect(await bench.takeIds({ count: 2 })).toEqual(idsOf(newcomer));
    });

    it('keeps nothing of a hundred thousand that came and went', async () => {
      const queue = await makeOpen();
      const offer = offerMaker();
      for (let n = 0; n < 100_000; n += 1) {
        const newcomer = offer({ queue: `q${n}`, taskType: `t${n}` });
        await queue.announce([newcomer]);
        await queue.remove([newcomer.taskId]);
      }
      const { entries, ...remembered } = queue.sizes;
      expect(entries).toBe(0);
      for (const size of Object.values(remembered)) expect(size).toBeLessThanOrEqual(10_000);
    });
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

  it('R-CH3 R-HA3: 10,000 task types in a queue cost a worker for every type a few steps', async () => {
    const queue = await makeOpen();
    const offer = offerMaker();
    const offers = Array.from({ length: 10_000 }, (_, index) => offer({ taskType: `t${index}` }));
    await queue.offer(offers);
    const everyType = { ...plainWorker, taskTypes: null };
    await queue.take(everyType);
    const all = [...parts, Walk, QueueState, Bucket, WildcardLane];
    const one = await countCalls(all, async () => {
      const answer = await queue.take(everyType);
      expect(answer).toMatchObject({ kind: 'taken', entries: [{ taskId: offers[1]?.taskId }] });
    });
    expect(one).toBeLessThan(150);
    const seen = await countCalls(all, async () => {
      const last = offers.at(-1);
      if (last === undefined) throw new Error('there are 10,000');
      expect(await queue.position(last.taskId, 1_000)).toBeGreaterThan(200);
      expect(await queue.live('q')).toMatchObject({ depth: { high: 0, medium: 9_998, low: 0 } });
      await queue.configure(configured(['q'], { ...defaultQueueSettings, maxConcurrency: 2 }));
    });
    expect(seen).toBeLessThan(10_000);
    const closed = await countCalls(all, async () => {
      expect(await queue.take(everyType)).toEqual({ kind: 'wait', waitMs: null });
    });
    expect(closed).toBeLessThan(150);
  });

  it('R-CH3 R-HA3: 10,000 capability sets cost a worker that has them all a bounded number', async () => {
    const queue = await makeOpen();
    const offer = offerMaker();
    const names = Array.from({ length: 14 }, (_, bit) => `c${bit}`);
    const offers = Array.from({ length: 10_000 }, (_, index) =>
      offer({ capabilities: names.filter((__, bit) => ((index >> bit) & 1) === 1) }),
    );
    await queue.offer(offers);
    const steps = await countCalls([...parts, Walk, WildcardLane], async () => {
      const request = { ...plainWorker, taskTypes: null, capabilities: names };
      expect(await queue.take(request)).toMatchObject({ kind: 'taken' });
      expect(await queue.take(request)).toMatchObject({ kind: 'taken' });
    });
    // Of which the first take makes one group for each set.
    expect(steps).toBeLessThan(300_000);
    const later = await countCalls([...parts, Walk, WildcardLane], async () => {
      await queue.take({ ...plainWorker, taskTypes: null, capabilities: names });
    });
    expect(later).toBeLessThan(30_000);
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
      return countCalls([...parts, Walk, QueueState, Bucket], async () => {
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
    const steps = await countCalls([...parts, Walk, QueueState, Bucket], async () => {
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
        answer.entries.map(({ taskId, grant, lane }) => ({
          ...{ taskId, grant },
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

  it('R-LA3: a queue takes less than 650 bytes besides its tasks', async () => {
    const bytes = await medianBytes(async () => {
      const few = await bytesHeldBy(40_000, 4);
      return ((await bytesHeldBy(40_000, 20_000)) - few) / 20_000;
    });
    expect(bytes).toBeLessThan(650);
  });

  it('R-LA3: a task that waits takes less than 360 bytes, with its id and its cost', async () => {
    const bytes = await medianBytes(async () => {
      const few = await bytesHeldBy(20_000, 4);
      return ((await bytesHeldBy(40_000, 4)) - few) / 20_000;
    });
    expect(bytes).toBeLessThan(360);
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
