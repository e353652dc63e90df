import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { perSecond } from './limits.contract.js';
import { Workbench, type ReadyQueueUnderTest } from './workbench.contract.js';

export function describeProbes(make: () => Promise<ReadyQueueUnderTest>): void {
  describe('probes', () => {
    let bench: Workbench;

    beforeEach(async () => {
      bench = await Workbench.open(make);
    });

    afterEach(() => bench.queue.close());

    const lane = { queue: 'q', taskType: 't', capabilities: [] };
    const offerSome = (count: number) =>
      bench.offer(...Array.from({ length: count }, () => bench.task()));

    describe('take', () => {
      it('R-RE9: so many are taken, however many are asked for, and then no instant is promised', async () => {
        await offerSome(5);
        await bench.configure({ probes: 3 });
        const answer = await bench.answer({ count: 9 });
        expect(answer).toMatchObject({ kind: 'taken', next: null, waitMs: null });
        expect(answer.kind === 'taken' && answer.entries).toHaveLength(3);
        await bench.expectWait(null);
        await bench.expectWait(null, { queues: ['q'] });
        await bench.advance(3_600_000);
        await bench.expectWait(null);
      });

      it('R-RE9: each take says whether another one could succeed', async () => {
        await offerSome(3);
        await bench.configure({ probes: 2 });
        expect(await bench.answer()).toMatchObject({ kind: 'taken', next: lane, waitMs: 0 });
        expect(await bench.answer({ queues: ['q'] })).toMatchObject({ next: null, waitMs: null });
        await bench.expectWait(null);
      });

      it('R-RE9: they count across the lanes of the queue, and for that queue alone', async () => {
        const types = ['r', 's', 't'];
        await bench.offer(...types.map((taskType) => bench.task({ taskType })));
        await bench.offer(bench.task({ queue: 'other' }), bench.task({ queue: 'other' }));
        await bench.configure({ probes: 2 });
        expect(await bench.takeIds({ taskTypes: ['r'] })).toHaveLength(1);
        expect(await bench.takeIds({ taskTypes: ['s'], queues: ['q'] })).toHaveLength(1);
        await bench.expectWait(null, { queues: ['q'] });
        const rest = await bench.take({ count: 9 });
        expect(rest.map((one) => one.lane.queue)).toEqual(['other', 'other']);
      });

      it('R-RE9: none at all is a number as well', async () => {
        await offerSome(1);
        await bench.configure({ probes: 0 });
        await bench.expectWait(null);
      });

      it('R-RE9: what is offered when none is left waits', async () => {
        await offerSome(1);
        await bench.configure({ probes: 1 });
        expect(await bench.takeIds()).toHaveLength(1);
        await offerSome(1);
        await bench.offer(bench.task({ taskType: 'new', priority: 'high' }));
        await bench.expectWait(null);
      });
    });

    describe('after the take', () => {
      it('R-RE9: a refused one comes back, once; a granted or finished one does not', async () => {
        await offerSome(5);
        await bench.configure({ probes: 2 });
        const [refused, granted] = await bench.takeIds({ count: 2 });
        if (refused === undefined || granted === undefined) throw new Error('two are taken');
        await bench.confirm(granted);
        await bench.refund(granted);
        await bench.expectWait(null);
        await bench.finish(granted);
        await bench.expectWait(null);
        await bench.refund(refused, refused);
        await bench.refund(refused);
        expect(await bench.takeIds({ count: 9 })).toHaveLength(1);
      });

      it('R-RE9: one that ended before it was confirmed counts', async () => {
        await offerSome(2);
        await bench.configure({ probes: 1 });
        const taken = await bench.takeIds();
        await bench.finish(...taken);
        await bench.refund(...taken);
        await bench.expectWait(null);
      });

      it('R-RE9: refused, it comes back under the version it was taken under alone', async () => {
        await offerSome(6);
        const unbound = await bench.takeIds();
        await bench.configure({ probes: 1 });
        const before = await bench.takeIds();
        await bench.configure({ probes: 1 });
        const now = await bench.takeIds();
        await bench.refund(...unbound, ...before);
        await bench.expectWait(null);
        await bench.refund(...now);
        expect(await bench.takeIds({ count: 9 })).toHaveLength(1);
      });
    });

    describe('versions', () => {
      it('R-RE9: every accepted version counts anew, and none lifts the bound', async () => {
        await offerSome(9);
        await bench.configure({ probes: 2 });
        expect(await bench.takeIds({ count: 9 })).toHaveLength(2);
        await bench.configure({ probes: 3 });
        expect(await bench.takeIds({ count: 9 })).toHaveLength(3);
        await bench.configure({});
        expect(await bench.takeIds({ count: 9 })).toHaveLength(4);
      });

      it('R-RE9: a version that is told again counts on', async () => {
        await offerSome(9);
        const queues = [bench.settings({ probes: 2 })];
        await bench.queue.configure({ limits: [], queues });
        expect(await bench.takeIds()).toHaveLength(1);
        await bench.queue.configure({ limits: [], queues });
        expect(await bench.takeIds({ count: 9 })).toHaveLength(1);
        await bench.queue.configure({ limits: [], queues });
        await bench.expectWait(null);
      });

      it('R-RE9: a restore counts anew, whatever runs', async () => {
        await offerSome(2);
        const queues = [bench.settings({ probes: 1 })];
        await bench.queue.configure({ limits: [], queues });
        const [running] = await bench.run();
        if (running === undefined) throw new Error('one runs');
        await bench.expectWait(null);
        await bench.restore({ queues, running: [{ taskId: running, grant: '1.1', queue: 'q' }] });
        await offerSome(2);
        expect(await bench.takeIds({ count: 9 })).toHaveLength(1);
        await bench.finish(running);
        await bench.expectWait(null);
      });

      it('R-RE9: they are not forgotten, however many queues come and go', async () => {
        await offerSome(1);
        await bench.configure({ probes: 1 });
        await bench.finish(...(await bench.run()));
        const others = Array.from({ length: 12_000 }, (_, index) =>
          bench.settings({}, `other${index}`),
        );
        await bench.queue.configure({ limits: [], queues: others });
        await offerSome(1);
        await bench.expectWait(null);
      });
    });

    describe('with other conditions', () => {
      it('R-RE9: nothing while the pause lasts, then the probes, then nothing', async () => {
        await offerSome(4);
        await bench.configure({ paused: true, pausedForMs: 5000, probes: 2 });
        await bench.expectWait(5000);
        await bench.advance(4999 - bench.subject.driftMs);
        await bench.expectWait(1 + bench.subject.driftMs);
        await bench.advance(1 + bench.subject.driftMs);
        expect(await bench.takeIds()).toHaveLength(1);
        expect(await bench.takeIds({ count: 9 })).toHaveLength(1);
        await bench.expectWait(null);
      });

      it('R-RE9: a lane that waited for the pause finds that others took the probes', async () => {
        await bench.offer(bench.task({ taskType: 's' }), bench.task({ taskType: 't' }));
        await bench.configure({ paused: true, pausedForMs: 1000, probes: 1 });
        await bench.expectWait(1000, { taskTypes: ['s'] });
        await bench.expectWait(1000, { taskTypes: ['t'] });
        await bench.advance(1000);
        expect(await bench.takeIds({ taskTypes: ['s'] })).toHaveLength(1);
        await bench.expectWait(null, { taskTypes: ['t'] });
      });

      it('R-CH6: the fewer of slots and probes', async () => {
        await offerSome(9);
        await bench.configure({ maxConcurrency: 2, probes: 3 });
        const [first, second] = await bench.run({ count: 9 });
        if (first === undefined || second === undefined) throw new Error('two run');
        await bench.finish(first);
        expect(await bench.takeIds({ count: 9 })).toHaveLength(1);
        await bench.finish(second);
        await bench.expectWait(null);
      });

      it('R-CH4: waits for tokens while there are probes, and for nothing after', async () => {
        await offerSome(9);
        const limits = [perSecond('requests', 1, 1)];
        await bench.configure({ limits, probes: 2 });
        expect(await bench.answer({ count: 9 })).toMatchObject({ next: null, waitMs: 1000 });
        await bench.advance(1000);
        expect(await bench.answer({ count: 9 })).toMatchObject({ next: null, waitMs: null });
        await bench.advance(1000);
        await bench.expectWait(null);
        expect((await bench.queue.live('q')).buckets).toMatchObject([{ tokens: 1 }]);
      });

      it('R-CH9: without probes a queue does not hold up those it shares a limit with', async () => {
        const limits = [{ use: 'account' }];
        await bench.share('account', perSecond('requests', 1, 9));
        await bench.configure({ limits, probes: 1 }, 'a');
        await bench.configure({ limits }, 'b');
        const queues = ['a', 'a', 'b', 'b'];
        await bench.offer(...queues.map((queue) => bench.task({ queue })));
        const taken = await bench.take({ count: 9 });
        expect(taken.map((one) => one.lane.queue)).toEqual(['a', 'b', 'b']);
      });
    });

    describe('wake-ups', () => {
      it('R-RE9: settings wake as many as there are probes', async () => {
        await offerSome(5);
        const wakesFor = (change: Parameters<Workbench['configure']>[0]) =>
          bench.listen(() => bench.configure(change));
        expect(await wakesFor({ probes: 3 })).toEqual([{ lanes: [lane], count: 3 }]);
        expect(await wakesFor({ probes: 0 })).toEqual([]);
        const later = { paused: true, pausedForMs: 1000, probes: 3 };
        expect(await wakesFor(later)).toEqual([{ lanes: [lane], count: 1 }]);
        expect(await wakesFor({})).toEqual([{ lanes: [lane], count: 5 }]);
      });

      it('R-RE9: a refused one wakes somebody for it; a freed slot without probes nobody', async () => {
        await offerSome(5);
        await bench.configure({ maxConcurrency: 2, probes: 2 });
        const [first, second] = await bench.takeIds({ count: 2 });
        if (first === undefined || second === undefined) throw new Error('two are taken');
        await bench.confirm(first);
        expect(await bench.listen(() => bench.finish(first))).toEqual([]);
        expect(await bench.listen(() => bench.refund(second))).toEqual([
          { lanes: [lane], count: 1 },
        ]);
      });
    });
  });
}
