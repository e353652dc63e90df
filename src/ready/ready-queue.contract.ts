import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TaskId } from '../domain/ids.js';
import { grantGenerations, grantIn, leaseNaming } from '../domain/lease.js';
import { noAgeing } from '../domain/priority.js';
import { describeLimits } from './limits.contract.js';
import { describeLine } from './line.contract.js';
import { describeProbes } from './probes.contract.js';
import type { Grant, Offer, ReadyQueue, TakeRequest } from './ready-queue.js';
import { describeSharedLimits } from './shared-limits.contract.js';
import {
  anyWork,
  restore,
  Workbench,
  type ReadyQueueUnderTest,
  type SettingsSketch,
  type Untold,
} from './workbench.contract.js';

export { offerMaker, type ReadyQueueUnderTest } from './workbench.contract.js';

const minuteMs = 60_000;

export function describeReadyQueueContract(
  name: string,
  make: () => Promise<ReadyQueueUnderTest>,
): void {
  describe(`${name} as a ready queue`, () => {
    let bench: Workbench;
    let queue: ReadyQueue;

    beforeEach(async () => {
      bench = await Workbench.open(make);
      queue = bench.queue;
    });

    afterEach(() => queue.close());

    const task = (...sketch: Parameters<Workbench['task']>) => bench.task(...sketch);
    const offer = (...offers: Offer[]) => bench.offer(...offers);
    const take = (request?: Partial<TakeRequest>) => bench.take(request);
    const takeIds = (request?: Partial<TakeRequest>) => bench.takeIds(request);
    const run = (request?: Partial<TakeRequest>) => bench.run(request);
    const confirm = (...taskIds: TaskId[]) => bench.confirm(...taskIds);
    const refund = (...taskIds: TaskId[]) => bench.refund(...taskIds);
    const finish = (...taskIds: TaskId[]) => bench.finish(...taskIds);
    const configure = (change: SettingsSketch, queueName?: string) =>
      bench.configure(change, queueName);

    describeLimits(make);
    describeSharedLimits(make);
    describeProbes(make);
    describeLine(make);

    describe('restore', () => {
      it('R-RE7: answers rebuild until it was restored', async () => {
        const fresh = await make();
        expect(await fresh.queue.take(anyWork)).toEqual({ kind: 'rebuild' });
        expect(await fresh.queue.offer([task()])).toEqual({ kind: 'rebuild' });
        await restore(fresh);
        expect(await fresh.queue.take(anyWork)).toEqual({ kind: 'wait', waitMs: null });
        await fresh.queue.close();
      });

      it('R-RE7: empties what was there', async () => {
        const [waiting, taken] = [task(), task()];
        await offer(waiting, taken);
        await take();
        await bench.restore();
        expect(await take()).toEqual([]);
        expect(await queue.missing([waiting.taskId, taken.taskId])).toHaveLength(2);
      });

      it('R-RE7: brings back the settings and what runs', async () => {
        const [running, waiting] = [task(), task()];
        await bench.restore({
          queues: [bench.settings({ maxConcurrency: 1 })],
          running: [{ taskId: running.taskId, grant: '1.1', queue: 'q' }],
        });
        expect(await offer(running, waiting)).toEqual(['held', 'accepted']);
        expect(await take()).toEqual([]);
        await finish(running.taskId);
        expect(await takeIds()).toEqual([waiting.taskId]);
      });

      it('counts a task that runs once, however often it is named', async () => {
        const { taskId } = task();
        const running = { taskId, grant: '1.1', queue: 'q' };
        await bench.restore({ running: [running, running] });
        expect((await queue.live('q')).running).toBe(1);
      });
    });

    describe('offer', () => {
      it('holds a task once: waiting, taken or running', async () => {
        const one = task();
        expect(await offer(one, one)).toEqual(['accepted', 'held']);
        await take();
        expect(await offer(one)).toEqual(['held']);
        await confirm(one.taskId);
        expect(await offer(one)).toEqual(['held']);
        await finish(one.taskId);
        expect(await offer(one)).toEqual(['accepted']);
      });

      it('tells which tasks it does not hold', async () => {
        const [waiting, taken, running, gone, never] = [task(), task(), task(), task(), task()];
        await offer(gone);
        await finish(...(await run()));
        await offer(running);
        await run();
        await offer(taken);
        await take();
        await offer(waiting);
        const all = [waiting, taken, running, gone, never].map(({ taskId }) => taskId);
        expect(await queue.missing(all)).toEqual([gone.taskId, never.taskId]);
      });
    });

    describe('order inside a queue', () => {
      it('R-CH1: strictly by priority', async () => {
        const [low, medium, high] = (['low', 'medium', 'high'] as const).map((priority) =>
          task({ priority }),
        );
        await offer(...[low, medium, high].filter((one) => one !== undefined));
        expect(await take({ count: 3 })).toEqual([
          { ...placeOf(high), effectivePriority: 'high' },
          { ...placeOf(medium), effectivePriority: 'medium' },
          { ...placeOf(low), effectivePriority: 'low' },
        ]);
      });

      it('R-CH1: first in, first out, for 10,000 tasks of one priority', async () => {
        const offers = Array.from({ length: 10_000 }, () => task());
        for (let from = 0; from < offers.length; from += 1000) {
          await offer(...offers.slice(from, from + 1000));
        }
        const taken: TaskId[] = [];
        while (taken.length < offers.length) taken.push(...(await takeIds({ count: 500 })));
        expect(taken).toEqual(offers.map(({ taskId }) => taskId));
      });

      it('R-CH1: an age that took longer to arrive does not change the order', async () => {
        const early = [task(), task()];
        const late = [task(), task()];
        await offer(...early.map((one) => ({ ...one, ageMs: 5 })));
        await offer(...late.map((one) => ({ ...one, ageMs: 40 })));
        expect(await takeIds({ count: 4 })).toEqual([...early, ...late].map((one) => one.taskId));
      });

      it('R-CH1: the oldest first, and insert order at the same age, however offered', async () => {
        const youngest = task({ ageMs: 10 });
        const second = task({ ageMs: 5000, seq: 200 });
        const first = task({ ageMs: 5000, seq: 100 });
        const oldest = task({ ageMs: 9000 });
        await offer(youngest, second, first, oldest);
        const order = [oldest, first, second, youngest].map(({ taskId }) => taskId);
        expect(await takeIds({ count: 9 })).toEqual(order);
      });

      it('R-CH1: one order across the lanes of a queue', async () => {
        const a = task({ taskType: 'a', ageMs: 3000 });
        const b = task({ taskType: 'b', ageMs: 4000 });
        const c = task({ taskType: 'a', capabilities: ['gpu'], ageMs: 2000 });
        const urgent = task({ taskType: 'c', priority: 'high' });
        await offer(a, b, c, urgent);
        const order = [urgent, b, a, c].map(({ taskId }) => taskId);
        expect(await takeIds({ count: 9, capabilities: ['gpu'] })).toEqual(order);
      });
    });

    describe('order between queues', () => {
      it('R-CH1: by the priority of their heads', async () => {
        const patient = task({ queue: 'a', priority: 'low' });
        const urgent = task({ queue: 'b', priority: 'high' });
        const next = task({ queue: 'b', priority: 'medium' });
        await offer(patient, urgent, next);
        const order = [urgent, next, patient].map(({ taskId }) => taskId);
        expect(await takeIds({ count: 9 })).toEqual(order);
      });

      it('R-CH1: equal ones take turns, whatever their age and number', async () => {
        const old = Array.from({ length: 5 }, () => task({ queue: 'old', ageMs: minuteMs }));
        await offer(...old, task({ queue: 'new' }), task({ queue: 'new' }));
        expect(await servedQueues(7)).toEqual(['old', 'new', 'old', 'new', 'old', 'old', 'old']);
      });

      it('R-CH1: a queue served elsewhere waits its turn everywhere', async () => {
        await offer(
          task({ queue: 'a', taskType: 'x' }),
          task({ queue: 'a', taskType: 'y' }),
          task({ queue: 'b', taskType: 'y' }),
          task({ queue: 'b', taskType: 'x' }),
        );
        expect((await take({ taskTypes: ['x'] }))[0]?.lane.queue).toBe('a');
        expect((await take({ taskTypes: ['y'] }))[0]?.lane.queue).toBe('b');
        expect((await take({ taskTypes: ['x'] }))[0]?.lane.queue).toBe('b');
      });

      it('R-CH1: a new queue stands behind those that wait', async () => {
        const bulk = (name: string) => Array.from({ length: 3 }, () => task({ queue: name }));
        await offer(...bulk('a'), ...bulk('b'));
        expect(await servedQueues(1)).toEqual(['a']);
        await offer(task({ queue: 'c' }));
        expect(await servedQueues(6)).toEqual(['b', 'a', 'c', 'b', 'a', 'b']);
      });

      it('R-CH1: an emptied queue keeps the turn it had', async () => {
        await offer(task({ queue: 'a' }), task({ queue: 'b' }), task({ queue: 'b' }));
        expect(await servedQueues(2)).toEqual(['a', 'b']);
        await offer(task({ queue: 'a' }));
        expect(await servedQueues(2)).toEqual(['a', 'b']);
      });

      it('R-CH9: a queue that is full, paused or busy delays no other', async () => {
        await configure({ maxReady: 1 }, 'full');
        await configure({ paused: true }, 'paused');
        await configure({ maxConcurrency: 1 }, 'busy');
        await offer(task({ queue: 'busy', priority: 'high' }));
        await run();
        await offer(
          ...['full', 'full', 'paused', 'busy'].map((name) => task({ queue: name, ageMs: 9 })),
        );
        await offer(task({ queue: 'free' }), task({ queue: 'free' }));
        expect(await servedQueues(4)).toEqual(['full', 'free', 'free']);
      });

      async function servedQueues(count: number): Promise<string[]> {
        return (await take({ count })).map(({ lane }) => lane.queue);
      }
    });

    describe('ageing', () => {
      const promises = [
        { from: 'low', to: 'medium', afterMs: 10 * minuteMs },
        { from: 'low', to: 'high', afterMs: 30 * minuteMs },
        { from: 'medium', to: 'high', afterMs: 20 * minuteMs },
      ] as const;

      for (const { from, to, afterMs } of promises) {
        it(`R-CH2: ${from} counts as ${to} from ${afterMs} ms on, and not before`, async () => {
          const aged = task({ priority: from });
          await offer(aged);
          await bench.advance(afterMs - 1 - bench.subject.driftMs);
          const early = task({ priority: to });
          await offer(early);
          expect(await takeIds()).toEqual([early.taskId]);
          await bench.advance(1 + bench.subject.driftMs);
          await offer(task({ priority: to }));
          expect(await take()).toEqual([{ ...placeOf(aged), effectivePriority: to }]);
        });
      }

      it('R-CH2: age counts from before the offer', async () => {
        const aged = task({ priority: 'low', ageMs: 30 * minuteMs });
        await offer(task({ priority: 'high' }), aged);
        expect(await take()).toEqual([{ ...placeOf(aged), effectivePriority: 'high' }]);
      });

      it('R-CH2: under endless high load a low task is taken when it reached high', async () => {
        const low = task({ priority: 'low' });
        await offer(low);
        const stepMs = minuteMs / 4;
        for (let ageMs = 0; ageMs < 30 * minuteMs; ageMs += stepMs) {
          const high = [task({ priority: 'high' }), task({ priority: 'high' })];
          await offer(...high);
          expect(await takeIds()).not.toContain(low.taskId);
          await bench.advance(stepMs);
        }
        // Half of the high ones still wait, but it is older than any of them.
        await offer(task({ priority: 'high' }));
        expect(await takeIds()).toEqual([low.taskId]);
      });

      it('R-CH2: an aged head moves its queue before others', async () => {
        const aged = task({ queue: 'a', priority: 'low' });
        await offer(aged);
        await bench.advance(10 * minuteMs);
        await offer(
          task({ queue: 'b', priority: 'low' }),
          task({ queue: 'c', priority: 'medium' }),
        );
        const order = (await take({ count: 3 })).map(({ lane }) => lane.queue);
        expect(order).toEqual(['a', 'c', 'b']);
      });

      it('R-CH2: can be off, for a queue of its own', async () => {
        await configure({ ageing: noAgeing });
        const low = task({ priority: 'low', ageMs: 100 * minuteMs });
        const neighbour = task({ queue: 'n', priority: 'low', ageMs: 100 * minuteMs });
        const medium = task();
        await offer(low, neighbour, medium);
        const order = [neighbour, medium, low].map(({ taskId }) => taskId);
        expect(await takeIds({ count: 3 })).toEqual(order);
      });

      it('R-CH7: changed ageing counts for the very next take', async () => {
        const low = task({ priority: 'low', ageMs: 1000 });
        const high = task({ priority: 'high' });
        await offer(low, high);
        await configure({ ageing: { ...noAgeing, lowToHighMs: 1000 } });
        expect(await take()).toEqual([{ ...placeOf(low), effectivePriority: 'high' }]);
      });
    });

    describe('routing', () => {
      it('R-CH3: a worker sees the types it asked for', async () => {
        const [a, b] = [task({ taskType: 'a' }), task({ taskType: 'b' })];
        await offer(a, b);
        expect(await takeIds({ taskTypes: [], count: 9 })).toEqual([]);
        expect(await takeIds({ taskTypes: ['b', 'c'], count: 9 })).toEqual([b.taskId]);
        expect(await takeIds({ taskTypes: null, count: 9 })).toEqual([a.taskId]);
      });

      it('R-CH3 R-HA3: 300 types of one queue come in one order, for workers of all and of some', async () => {
        const tasks = Array.from({ length: 300 }, (_, index) =>
          task({
            taskType: `t${(7 * index) % 300}`,
            priority: index % 3 === 0 ? 'high' : 'low',
            ageMs: 1_000 - index,
          }),
        );
        await offer(...tasks);
        const ids = (priority: string) =>
          tasks.filter((one) => one.priority === priority).map(({ taskId }) => taskId);
        const [high, low] = [ids('high'), ids('low')];
        expect(await takeIds({ count: 3 })).toEqual(high.slice(0, 3));
        const [, , , fourth, fifth] = high;
        const named = tasks.find(({ taskId }) => taskId === fifth)?.lane.taskType ?? '';
        expect(await takeIds({ count: 1, taskTypes: [named] })).toEqual([fifth]);
        expect(await takeIds({ count: 1 })).toEqual([fourth]);
        expect(await takeIds({ count: 300 })).toEqual([...high.slice(5), ...low]);
        expect(await takeIds({ count: 1 })).toEqual([]);
      });

      it('R-CH3: a worker sees what asks for no more than its capabilities', async () => {
        const plain = task();
        const gpu = task({ capabilities: ['gpu'] });
        const both = task({ capabilities: ['gpu', 'large'] });
        await offer(both, gpu, plain);
        expect(await takeIds({ capabilities: ['large'], count: 9 })).toEqual([plain.taskId]);
        expect(await takeIds({ capabilities: ['gpu', 'x'], count: 9 })).toEqual([gpu.taskId]);
        expect(await takeIds({ capabilities: ['large', 'gpu'], count: 9 })).toEqual([both.taskId]);
      });

      it('R-CH3: what a worker cannot do holds up nothing in the same queue', async () => {
        const urgent = Array.from({ length: 100 }, () =>
          task({ capabilities: ['gpu'], priority: 'high', ageMs: minuteMs }),
        );
        const plain = task({ priority: 'low' });
        await offer(...urgent, plain);
        expect(await takeIds({ count: 9 })).toEqual([plain.taskId]);
        expect(await queue.take(anyWork)).toEqual({ kind: 'wait', waitMs: null });
      });

      it('R-CH3: sees a lane that appears after it asked', async () => {
        expect(await take()).toEqual([]);
        const late = task({ taskType: 'late' });
        await offer(late);
        expect(await takeIds()).toEqual([late.taskId]);
      });

      it('takes from the queues it names only, in the same order', async () => {
        await offer(
          task({ queue: 'a', priority: 'high' }),
          task({ queue: 'b', taskType: 'x' }),
          task({ queue: 'b', taskType: 'y', ageMs: 5 }),
          task({ queue: 'c' }),
          task({ queue: 'c', capabilities: ['gpu'], priority: 'high' }),
        );
        const taken = await take({ queues: ['c', 'b', 'c', 'unknown'], count: 9 });
        expect(taken.map(({ lane }) => `${lane.queue}/${lane.taskType}`)).toEqual([
          'b/y',
          'c/t',
          'b/x',
        ]);
        expect(await queue.take({ ...anyWork, queues: [] })).toEqual({
          kind: 'wait',
          waitMs: null,
        });
      });

      it('R-CH2: ages what it takes from the queues it names', async () => {
        const young = task({ queue: 'b', priority: 'low' });
        const aged = task({ queue: 'a', priority: 'low', ageMs: 5 * minuteMs });
        await offer(young, aged);
        await bench.advance(5 * minuteMs);
        const [first, second] = await take({ queues: ['b', 'a'], count: 2 });
        expect(first).toEqual({ ...placeOf(aged), effectivePriority: 'medium' });
        expect(second?.effectivePriority).toBe('low');
      });
    });

    describe('take', () => {
      it('says whether another take could succeed', async () => {
        await offer(task(), task(), task({ capabilities: ['gpu'] }));
        expect(await queue.take(anyWork)).toMatchObject({ kind: 'taken', next: task().lane });
        expect(await queue.take(anyWork)).toMatchObject({ kind: 'taken', next: null });
        expect(await queue.take(anyWork)).toEqual({ kind: 'wait', waitMs: null });
      });

      it('gives less than asked when there is less', async () => {
        await offer(task(), task());
        expect(await take({ count: 5 })).toHaveLength(2);
      });

      it('refuses to take nothing', async () => {
        await expect(queue.take({ ...anyWork, count: 0 })).rejects.toThrow(RangeError);
      });

      it('never gives one task twice', async () => {
        const offers = Array.from({ length: 200 }, () => task());
        await offer(...offers);
        const takes = await Promise.all(Array.from({ length: 50 }, () => takeIds({ count: 7 })));
        const taken = takes.flat();
        expect(new Set(taken).size).toBe(taken.length);
        expect(taken).toHaveLength(offers.length);
      });
    });

    describe('max_concurrency', () => {
      it('R-CH6: taken and running count against it', async () => {
        await configure({ maxConcurrency: 2 });
        await offer(task(), task(), task());
        expect(await run({ count: 9 })).toHaveLength(2);
        expect(await queue.take(anyWork)).toEqual({ kind: 'wait', waitMs: null });
      });

      it('R-CH6: a take that meets it says that there is no more', async () => {
        await configure({ maxConcurrency: 1 });
        await offer(task(), task());
        expect(await queue.take(anyWork)).toMatchObject({ kind: 'taken', next: null });
      });

      it('R-CH6: a finished or refunded task gives its slot back, once', async () => {
        await configure({ maxConcurrency: 1 });
        const [first, second, third] = [task(), task(), task()];
        await offer(first, second, third);
        await run();
        await finish(first.taskId, first.taskId);
        await finish(first.taskId);
        expect(await takeIds({ count: 9 })).toEqual([second.taskId]);
        await refund(second.taskId, second.taskId);
        expect(await takeIds({ count: 9 })).toEqual([third.taskId]);
      });

      it('R-CH6: counts across the lanes of the queue, and for that queue alone', async () => {
        await configure({ maxConcurrency: 1 });
        await offer(
          task({ taskType: 'a', ageMs: 5 }),
          task({ taskType: 'b', capabilities: ['gpu'] }),
          task({ queue: 'other' }),
        );
        expect(await take({ count: 9, capabilities: ['gpu'] })).toHaveLength(2);
        expect(await take({ taskTypes: ['b'], capabilities: ['gpu'] })).toEqual([]);
        expect(await take({ queues: ['q'], capabilities: ['gpu'] })).toEqual([]);
      });

      it('R-CH7: raised or lowered while running, it counts for the next take', async () => {
        await offer(task(), task(), task(), task());
        const running = await run({ count: 2 });
        await configure({ maxConcurrency: 1 });
        expect(await take()).toEqual([]);
        await finish(...running.slice(0, 1));
        expect(await take()).toEqual([]);
        await configure({ maxConcurrency: 2 });
        expect(await take({ count: 9 })).toHaveLength(1);
        await configure({ maxConcurrency: null });
        expect(await take({ count: 9 })).toHaveLength(1);
      });
    });

    describe('pauses', () => {
      it('R-CH7: a paused queue gives nothing until it is resumed', async () => {
        const one = task();
        await offer(one);
        await configure({ paused: true });
        expect(await queue.take(anyWork)).toEqual({ kind: 'wait', waitMs: null });
        await bench.advance(24 * 60 * minuteMs);
        expect(await queue.take(anyWork)).toEqual({ kind: 'wait', waitMs: null });
        await configure({ paused: false });
        expect(await takeIds()).toEqual([one.taskId]);
      });

      it('R-CH7: paused until an instant, it opens then; the wait is exact', async () => {
        const one = task();
        await offer(one, task({ capabilities: ['gpu'] }));
        await configure({ paused: true, pausedForMs: 5000 });
        await bench.expectWait(5000);
        await bench.expectWait(5000, { queues: ['q'] });
        await bench.advance(4999 - bench.subject.driftMs);
        await bench.expectWait(1 + bench.subject.driftMs);
        await bench.advance(1 + bench.subject.driftMs);
        expect(await takeIds()).toEqual([one.taskId]);
      });

      it('R-CH7: the first of several openings is the wait, of what the worker can do', async () => {
        await configure({ paused: true, pausedForMs: 1000 }, 'gpu');
        await configure({ paused: true, pausedForMs: 3000 }, 'a');
        await configure({ paused: true, pausedForMs: 2000 }, 'b');
        await configure({ paused: true }, 'c');
        await offer(
          task({ queue: 'gpu', capabilities: ['gpu'] }),
          ...['a', 'b', 'c'].map((name) => task({ queue: name })),
        );
        await bench.expectWait(2000);
        await bench.expectWait(1000, { capabilities: ['gpu'] });
        await bench.expectWait(3000, { queues: ['a', 'c'] });
        expect(await queue.take({ ...anyWork, queues: ['c'] })).toEqual({
          kind: 'wait',
          waitMs: null,
        });
      });

      it('R-CH7: an emptied queue is no reason to wait', async () => {
        const one = task();
        await offer(one);
        await configure({ paused: true, pausedForMs: 1000 });
        await bench.expectWait(1000);
        await queue.remove([one.taskId]);
        expect(await queue.take(anyWork)).toEqual({ kind: 'wait', waitMs: null });
      });

      it('R-CH7: a pause is lengthened, shortened or lifted while it lasts', async () => {
        await offer(task(), task());
        await configure({ paused: true, pausedForMs: 1000 });
        await bench.expectWait(1000);
        await configure({ paused: true, pausedForMs: 9000 });
        await bench.expectWait(9000);
        await configure({ paused: true, pausedForMs: 500 });
        await bench.expectWait(500);
        await configure({ paused: false, pausedForMs: 500 });
        expect(await take()).toHaveLength(1);
      });

      it('R-CH6: paused and without a slot: no instant can be promised', async () => {
        await configure({ maxConcurrency: 1 });
        await offer(task(), task());
        const [running] = await run();
        await configure({ maxConcurrency: 1, paused: true, pausedForMs: 1000 });
        expect(await queue.take(anyWork)).toEqual({ kind: 'wait', waitMs: null });
        if (running !== undefined) await finish(running);
        await bench.expectWait(1000);
      });
    });

    describe('after the take', () => {
      it('unknown ids are ignored', async () => {
        const { taskId } = task();
        await confirm(taskId);
        await refund(taskId);
        await queue.remove([taskId]);
        await finish(taskId);
        expect(await queue.missing([taskId])).toEqual([taskId]);
      });

      it('what waits is neither confirmed, refunded nor finished', async () => {
        const one = task();
        await offer(one);
        await confirm(one.taskId);
        await refund(one.taskId);
        await finish(one.taskId);
        expect((await queue.live('q')).running).toBe(0);
        expect(await takeIds()).toEqual([one.taskId]);
      });

      it('a refunded entry is gone, a confirmed one is not refunded', async () => {
        const [stale, good] = [task(), task()];
        await offer(stale, good);
        await take({ count: 2 });
        await confirm(good.taskId, good.taskId);
        await refund(stale.taskId, good.taskId);
        expect(await queue.missing([stale.taskId, good.taskId])).toEqual([stale.taskId]);
        expect((await queue.live('q')).running).toBe(1);
      });

      it('R-CH5: a grant from before a rebuild touches nothing of the one after it', async () => {
        const one = task();
        await offer(one);
        await take();
        const old = bench.granted([one.taskId]);
        await bench.restore({ queues: [bench.settings({ maxConcurrency: 1 })] });
        await offer(one, task());
        await take();
        await queue.refund(old);
        await queue.confirm(old);
        expect(await queue.live('q')).toMatchObject({ running: 0 });
        expect(await take()).toEqual([]);
        await confirm(one.taskId);
        expect(await queue.live('q')).toMatchObject({ running: 1 });
      });

      it('removes what waits, and leaves what is taken or runs', async () => {
        const [running, taken, head, last] = [task(), task(), task(), task()];
        await offer(running, taken, head, last);
        await run();
        await take();
        await queue.remove([running, taken, head, head].map(({ taskId }) => taskId));
        expect(await queue.missing([running, taken, head].map(({ taskId }) => taskId))).toEqual([
          head.taskId,
        ]);
        expect(await takeIds({ count: 9 })).toEqual([last.taskId]);
        expect((await queue.live('q')).running).toBe(1);
      });
    });

    describe('configure', () => {
      it('R-CH7: ignores a version that is not newer', async () => {
        await offer(task());
        const older = bench.settings({ paused: false });
        const newer = bench.settings({ paused: true });
        await queue.configure({ limits: [], queues: [newer] });
        await queue.configure({
          limits: [],
          queues: [older, { ...older, version: newer.version }],
        });
        expect(await take()).toEqual([]);
      });

      it('R-CH7: remembers the version of a queue with default settings', async () => {
        const older = bench.settings({ paused: true });
        await configure({});
        await queue.configure({ limits: [], queues: [older] });
        await offer(task());
        expect(await take()).toHaveLength(1);
      });
    });

    describe('wake-ups', () => {
      it('tells an offer lane by lane, with the number accepted', async () => {
        const [a1, a2, b] = [task({ taskType: 'a' }), task({ taskType: 'a' }), task()];
        expect(await bench.listen(() => offer(a1, b, a2, a1))).toEqual([
          { lanes: [a1.lane], count: 2 },
          { lanes: [b.lane], count: 1 },
        ]);
        expect(await bench.listen(() => offer(a1))).toEqual([]);
      });

      it('tells a freed slot that lets waiting work go, and no other', async () => {
        await configure({ maxConcurrency: 3 });
        await offer(task(), task(), task(), task(), task());
        const [a, b, c] = await run({ count: 3 });
        if (a === undefined || b === undefined || c === undefined) throw new Error('three run');
        expect(await bench.listen(() => finish(a, b))).toEqual([
          { lanes: [task().lane], count: 2 },
        ]);
        expect(await bench.listen(() => finish(c))).toEqual([]);
        const [d] = await takeIds({ count: 9 });
        if (d === undefined) throw new Error('the rest is taken');
        expect(await bench.listen(() => refund(d))).toEqual([]);
      });

      it('tells a refund that frees the last slot', async () => {
        await configure({ maxConcurrency: 1 });
        await offer(task(), task());
        const taken = await takeIds();
        expect(await bench.listen(() => refund(...taken))).toEqual([
          { lanes: [task().lane], count: 1 },
        ]);
      });

      it('tells settings that let waiting work go, or change its wait', async () => {
        await offer(task(), task());
        expect(await bench.listen(() => configure({ paused: true }))).toEqual([]);
        const later = { paused: true, pausedForMs: 1000 };
        expect(await bench.listen(() => configure(later))).toEqual([
          { lanes: [task().lane], count: 1 },
        ]);
        expect(await bench.listen(() => configure({}))).toEqual([
          { lanes: [task().lane], count: 2 },
        ]);
        const narrow = { maxConcurrency: 1 };
        expect(await bench.listen(() => configure(narrow))).toEqual([
          { lanes: [task().lane], count: 1 },
        ]);
        expect(await bench.listen(() => configure(narrow, 'empty'))).toEqual([]);
      });

      it('a listener may take at once', async () => {
        const takes: Promise<readonly Untold[]>[] = [];
        const stop = queue.onWake(() => takes.push(take({ count: 9 })));
        await offer(task(), task({ taskType: 'other' }));
        stop();
        expect((await Promise.all(takes)).flat()).toHaveLength(2);
      });
    });

    describe('seeing', () => {
      it('R-RE7: a take tells the generation of its contents', async () => {
        await bench.restore({ generation: 7 });
        await offer(task());
        expect(await queue.take(anyWork)).toMatchObject({ kind: 'taken', generation: 7 });
      });

      it('R-RE7: lists what is taken or runs, the oldest first, a stretch at a time', async () => {
        const restored = task({ queue: 'r' });
        await bench.restore({ running: [{ taskId: restored.taskId, grant: '1.1', queue: 'r' }] });
        const [first, second, third, waiting] = [task(), task(), task(), task()];
        await offer(first, second, third, waiting);
        for (const one of [first, second, third]) {
          await bench.advance(1000);
          expect(await takeIds()).toEqual([one.taskId]);
        }
        await confirm(second.taskId);
        const { entries, next } = await queue.listOut(null, 3);
        const rest = await queue.listOut(next, 3);
        expect(rest.next).toBeNull();
        const listed = [...entries, ...rest.entries].map(({ forMs, ...out }) => {
          return { ...out, forSeconds: Math.floor(forMs / 1000) };
        });
        const [a, b, c] = bench.granted([first.taskId, second.taskId, third.taskId]);
        expect(listed).toEqual([
          { taskId: restored.taskId, grant: '1.1', queue: 'r', confirmed: true, forSeconds: 3 },
          { ...a, queue: 'q', confirmed: false, forSeconds: 2 },
          { ...b, queue: 'q', confirmed: true, forSeconds: 1 },
          { ...c, queue: 'q', confirmed: false, forSeconds: 0 },
        ]);
        await finish(first.taskId, second.taskId, third.taskId, restored.taskId);
        expect(await queue.listOut(null, 3)).toEqual({ entries: [], next: null });
      });

      it('R-CH6: an end that names its taking frees no slot of another one', async () => {
        const one = task();
        const endOf = (grants: readonly Grant[]) =>
          grants.map((grant) => ({ ...grant, queue: 'q', reserved: {}, usage: null }));
        await bench.configure({ maxConcurrency: 1 });
        await offer(one);
        await take();
        const former = bench.granted([one.taskId]);
        await bench.refund(one.taskId);
        await offer(one);
        await run();
        await offer(task());
        await queue.finish(endOf(former));
        expect(await take()).toEqual([]);
        await queue.finish(endOf(bench.granted([one.taskId])));
        expect(await take()).toHaveLength(1);
      });

      it('R-CH6: what was restored is ended under the grant that its lease names', async () => {
        const { taskId } = task();
        const endOf = (grant: string) => [{ taskId, grant, queue: 'q', reserved: {}, usage: null }];
        await bench.restore({
          queues: [bench.settings({ maxConcurrency: 1 })],
          running: [{ taskId, queue: 'q', grant: '1.7' }],
        });
        await offer(task());
        expect(await queue.listOut(null, 1)).toMatchObject({ entries: [{ taskId, grant: '1.7' }] });
        await queue.finish(endOf('1.6'));
        expect(await take()).toEqual([]);
        await queue.finish(endOf('1.7'));
        expect(await take()).toHaveLength(1);
      });

      it('R-CH6: a grant is one that a lease can name, in every generation', async () => {
        await bench.restore({ generation: 3 * grantGenerations + 5 });
        await offer(task());
        const answer = await bench.answer();
        const grant = answer.kind === 'taken' ? (answer.entries[0]?.grant ?? '') : '';
        expect(grant).toMatch(/^5\./);
        expect(grantIn(leaseNaming(grant, '0'.repeat(15)))).toBe(grant);
      });

      it('R-RE7: is closed from the beginning of a restore to its end', async () => {
        await offer(task());
        await bench.subject.lose?.();
        expect(await queue.beginRestore(1)).toBe('yours');
        expect(await queue.take(anyWork)).toEqual({ kind: 'rebuild' });
        await bench.restore();
        expect(await queue.take(anyWork)).toEqual({ kind: 'wait', waitMs: null });
      });

      it('R-OB5: position counts who is taken before it, in every lane of its queue', async () => {
        const last = task({ priority: 'low' });
        await offer(
          last,
          task({ priority: 'high' }),
          task({ taskType: 'other', ageMs: 5 }),
          task({ priority: 'low', ageMs: 5 }),
          task({ queue: 'elsewhere', priority: 'high' }),
        );
        expect(await queue.position(last.taskId, 1000)).toBe(3);
        expect(await queue.position(last.taskId, 2)).toBe(2);
      });

      it('R-OB5: positions that are asked for together are each its own', async () => {
        const high = Array.from({ length: 100 }, () => task({ priority: 'high' }));
        const medium = Array.from({ length: 100 }, () => task());
        await offer(...medium, ...high);
        const order = [...high, ...medium].map(({ taskId }, index) => ({ taskId, index }));
        const limitOf = (index: number) => (index % 2 === 0 ? 1_000 : 120);
        const asked = order.map(({ taskId, index }) => queue.position(taskId, limitOf(index)));
        const expected = order.map(({ index }) => Math.min(index, limitOf(index)));
        expect(await Promise.all(asked)).toEqual(expected);
      });

      it('R-OB5: position goes by effective priority', async () => {
        const low = task({ priority: 'low' });
        await offer(low, task(), task({ priority: 'high' }));
        expect(await queue.position(low.taskId, 1000)).toBe(2);
        await bench.advance(30 * minuteMs);
        await offer(task(), task({ priority: 'high' }));
        // Both others aged as much: `high` before, and the medium one inserted after it, behind.
        expect(await queue.position(low.taskId, 1000)).toBe(0);
      });

      it('R-OB5: only what waits has a position', async () => {
        const one = task();
        expect(await queue.position(one.taskId, 10)).toBeNull();
        await offer(one);
        await take();
        expect(await queue.position(one.taskId, 10)).toBeNull();
      });

      it('R-OB5: counts depth, effective depth, running and the oldest age', async () => {
        await offer(
          task({ priority: 'low', ageMs: 40 * minuteMs }),
          task({ priority: 'low', ageMs: 15 * minuteMs, taskType: 'other' }),
          task({ priority: 'low' }),
          task({ priority: 'medium', ageMs: 25 * minuteMs }),
          task({ priority: 'medium' }),
          task({ priority: 'high' }),
          task({ priority: 'high', queue: 'elsewhere' }),
        );
        const live = await queue.live('q');
        expect(live).toMatchObject({
          depth: { high: 1, medium: 2, low: 3 },
          effectiveDepth: { high: 3, medium: 2, low: 1 },
          running: 0,
        });
        expect(live.oldestAgeMs).toBeGreaterThanOrEqual(40 * minuteMs);
        expect(live.oldestAgeMs).toBeLessThanOrEqual(40 * minuteMs + bench.subject.driftMs);
        await run({ queues: ['q'], count: 2 });
        expect(await queue.live('q')).toMatchObject({
          depth: { high: 1, medium: 1, low: 2 },
          running: 2,
        });
      });

      it('R-OB1: a survey counts every queue by effective priority, with the oldest of each', async () => {
        await offer(
          task({ priority: 'low', ageMs: 40 * minuteMs }),
          task({ priority: 'low', ageMs: 15 * minuteMs }),
          task({ priority: 'low', ageMs: 12 * minuteMs }),
          task({ priority: 'low', ageMs: 2 * minuteMs }),
          task({ priority: 'medium', queue: 'elsewhere' }),
        );
        await run({ queues: ['elsewhere'] });
        const ages: [string, number, number][] = [];
        const queues = await queue.survey((priority, ageMs, count) => {
          ages.push([priority, Math.floor(ageMs / minuteMs), count]);
        });
        const found = new Map(queues.map(({ queue: name, ...counts }) => [name, counts]));
        expect(found.get('q')).toMatchObject({ depth: { high: 0, medium: 0, low: 4 }, running: 0 });
        const { high, medium, low } = found.get('q')?.waiting ?? {};
        expect([high?.count, medium?.count, low?.count]).toEqual([1, 2, 1]);
        const oldest = [high, medium, low].map((one) =>
          Math.floor((one?.oldestAgeMs ?? 0) / minuteMs),
        );
        expect(oldest).toEqual([40, 15, 2]);
        expect(found.get('elsewhere')).toMatchObject({ running: 1, heldBackBy: null });
        expect(ages.toSorted((a, b) => b[1] - a[1])).toEqual([
          ['high', 40, 1],
          ['medium', 15, 1],
          ['medium', 12, 1],
          ['low', 2, 1],
        ]);
      });

      it('R-OB1: a survey tells what holds a queue back while something waits', async () => {
        const heldBack = async () =>
          (await queue.survey(() => undefined)).find((one) => one.queue === 'q')?.heldBackBy;
        await configure({ limits: [{ unit: 'tokens', rate: 100, perSeconds: 60, burst: 25 }] });
        await offer(task({ cost: { tokens: 20 } }));
        expect(await heldBack()).toBeNull();
        await run();
        await offer(task({ cost: { tokens: 24 } }));
        expect(await heldBack()).toBe('rate_limit');
        await configure({ limits: [], maxConcurrency: 1 });
        expect(await heldBack()).toBe('max_concurrency');
        await configure({ probes: 0 });
        expect(await heldBack()).toBe('probes');
        await configure({ paused: true });
        expect(await heldBack()).toBe('pause');
      });

      it('R-OB1: the sample of a long window stands for all of it', async () => {
        await offer(...Array.from({ length: 300 }, (_, n) => task({ ageMs: (300 - n) * 1000 })));
        const seen: number[] = [];
        let sum = 0;
        await queue.survey((_, ageMs, count) => {
          seen.push(ageMs);
          sum += count;
        });
        expect(Math.round(sum)).toBe(300);
        expect(seen.length).toBeLessThanOrEqual(8);
        expect(Math.max(...seen)).toBeGreaterThan(150_000);
        expect(Math.min(...seen)).toBeLessThan(150_000);
      });

      it('R-OB5: a queue it never heard of is empty', async () => {
        const none = { high: 0, medium: 0, low: 0 };
        expect(await queue.live('unknown')).toEqual({
          depth: none,
          effectiveDepth: none,
          running: 0,
          oldestAgeMs: null,
          buckets: [],
        });
      });
    });
  });
}

function placeOf(offer: Offer | undefined): Omit<Untold, 'effectivePriority'> | undefined {
  return offer && { taskId: offer.taskId, lane: offer.lane, priority: offer.priority };
}
