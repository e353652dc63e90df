import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RateLimit } from '../domain/queue-settings.js';
import { ownBucket } from '../domain/token-bucket.js';
import type { Offer } from './ready-queue.js';
import { Workbench, type ReadyQueueUnderTest } from './workbench.contract.js';

/** `burst` at once, then one every 1000 / `rate` ms. */
export function perSecond(unit: string, rate: number, burst: number): RateLimit {
  return { unit, rate, perSeconds: 1, burst };
}

const perMinute = (rate: number): RateLimit => ({
  unit: 'requests',
  rate,
  perSeconds: 60,
  burst: null,
});

export const idsOf = (...offers: Offer[]) => offers.map(({ taskId }) => taskId);

export function describeLimits(make: () => Promise<ReadyQueueUnderTest>): void {
  describe('limits of a queue', () => {
    let bench: Workbench;

    beforeEach(async () => {
      bench = await Workbench.open(make);
    });

    afterEach(() => bench.queue.close());

    const tasks = (count: number) => Array.from({ length: count }, () => bench.task());
    const costing = (tokens: number, sketch = {}) => bench.task({ ...sketch, cost: { tokens } });

    describe('rate', () => {
      it('R-CH4: 20 a minute: one at once, the next after the exact wait', async () => {
        await bench.configure({ limits: [perMinute(20)] });
        await bench.offer(...tasks(3));
        expect(await bench.take({ count: 9 })).toHaveLength(1);
        await bench.expectWait(2772);
        await bench.expectWait(2772, { queues: ['q'] });
        await bench.advance(2771 - bench.subject.driftMs);
        await bench.expectWait(1 + bench.subject.driftMs);
        await bench.advance(1 + bench.subject.driftMs);
        expect(await bench.take({ count: 9 })).toHaveLength(1);
        await bench.expectWait(3012);
      });

      it('R-CH4: 1000 a minute: five at once', async () => {
        await bench.configure({ limits: [perMinute(1000)] });
        await bench.offer(...tasks(9));
        expect(await bench.take({ count: 9 })).toHaveLength(5);
        await bench.expectWait(61);
      });

      it('R-CH4: a burst at once, then by the rate, up to the burst again', async () => {
        await bench.configure({ limits: [perSecond('requests', 10, 3)] });
        await bench.offer(...tasks(20));
        expect(await bench.take({ count: 9, queues: ['q'] })).toHaveLength(3);
        await bench.expectWait(100);
        await bench.advance(200);
        expect(await bench.take({ count: 9 })).toHaveLength(2);
        await bench.advance(60_000);
        expect(await bench.take({ count: 9 })).toHaveLength(3);
      });

      it('R-CH4: whoever takes as soon as it may gets 20 in no minute more, and hardly less', async () => {
        await bench.configure({ limits: [perMinute(20)] });
        await bench.offer(...tasks(100));
        const takenAt: number[] = [];
        let nowMs = 0;
        while (nowMs < 180_000) {
          const answer = await bench.answer({ count: 9 });
          if (answer.kind === 'taken') takenAt.push(...answer.entries.map(() => nowMs));
          const waitMs = answer.kind === 'rebuild' ? null : answer.waitMs;
          if (waitMs === null) throw new Error('there is work');
          nowMs += waitMs;
          await bench.advance(waitMs);
        }
        const inWindowFrom = (fromMs: number) =>
          takenAt.filter((at) => at >= fromMs && at < fromMs + 60_000).length;
        expect(Math.max(...takenAt.map(inWindowFrom))).toBeLessThanOrEqual(20);
        expect(takenAt.length).toBeGreaterThanOrEqual(60);
      });

      it('R-CH4: a take says what the next one would find', async () => {
        await bench.configure({ limits: [perSecond('requests', 10, 2)] });
        const [first] = tasks(1);
        await bench.offer(...tasks(3));
        expect(await bench.answer()).toMatchObject({ next: first?.lane, waitMs: 0 });
        expect(await bench.answer()).toMatchObject({ kind: 'taken', next: null, waitMs: 100 });
        await bench.advance(100);
        expect(await bench.answer()).toMatchObject({ kind: 'taken', next: null, waitMs: null });
      });

      it('R-CH9: a queue without tokens delays no other', async () => {
        await bench.configure({ limits: [perSecond('requests', 1, 1)] }, 'limited');
        await bench.offer(
          ...[1, 2, 3].map(() => bench.task({ queue: 'limited', priority: 'high' })),
          ...[1, 2].map(() => bench.task({ queue: 'free', priority: 'low' })),
        );
        const served = (await bench.take({ count: 9 })).map(({ lane }) => lane.queue);
        expect(served).toEqual(['limited', 'free', 'free']);
      });

      it('R-CH6: without a slot no token is spent, and no instant is promised', async () => {
        await bench.configure({ maxConcurrency: 1, limits: [perSecond('requests', 1, 2)] });
        await bench.offer(...tasks(4));
        const running = await bench.run({ count: 9 });
        expect(running).toHaveLength(1);
        await bench.expectWait(null);
        await bench.finish(...running);
        const last = await bench.run({ count: 9 });
        expect(last).toHaveLength(1);
        await bench.expectWait(null);
        await bench.finish(...last);
        await bench.expectWait(1000);
      });

      it('R-CH7: paused and without a token: the later of the two', async () => {
        const limits = [perSecond('requests', 1, 1)];
        await bench.configure({ limits });
        await bench.offer(...tasks(3));
        await bench.take();
        await bench.configure({ limits, paused: true, pausedForMs: 400 });
        await bench.expectWait(1000);
        await bench.configure({ limits, paused: true, pausedForMs: 3000 });
        await bench.expectWait(3000);
        await bench.configure({ limits, paused: true });
        await bench.expectWait(null);
      });
    });

    describe('cost', () => {
      it('R-CH5: weighs what a task says it costs', async () => {
        await bench.configure({ limits: [perSecond('tokens', 100, 100)] });
        await bench.offer(costing(60), costing(60), costing(40));
        expect(await bench.take({ count: 9 })).toHaveLength(1);
        await bench.expectWait(200);
        await bench.advance(200);
        expect(await bench.take({ count: 9 })).toHaveLength(1);
        await bench.expectWait(400);
      });

      it('R-CH5: every task costs one request, whatever it says', async () => {
        await bench.configure({ limits: [perSecond('requests', 1, 2)] });
        await bench.offer(...[0, 5, 5].map((requests) => bench.task({ cost: { requests } })));
        expect(await bench.take({ count: 9 })).toHaveLength(2);
        await bench.expectWait(1000);
      });

      it('R-CH5: what costs more than the bucket holds goes when it is full, into debt', async () => {
        await bench.configure({ limits: [perSecond('tokens', 10, 10)] });
        await bench.offer(costing(1), costing(25), costing(1));
        expect(await bench.take({ count: 9 })).toHaveLength(1);
        await bench.expectWait(100);
        await bench.advance(100);
        expect(await bench.take({ count: 9 })).toHaveLength(1);
        await bench.expectWait(1600);
      });

      it('R-CH5: what costs nothing waits until the debt is paid', async () => {
        await bench.configure({ limits: [perSecond('tokens', 10, 10)] });
        await bench.offer(costing(25), costing(0), bench.task());
        expect(await bench.take({ count: 9 })).toHaveLength(1);
        await bench.expectWait(1500);
        await bench.advance(1500);
        expect(await bench.take({ count: 9 })).toHaveLength(2);
      });

      it('R-CH5: a debt is paid within an hour, whatever a task costs or uses', async () => {
        await bench.configure({ limits: [perSecond('tokens', 10, 10)] });
        await bench.offer(costing(1e12), costing(1));
        expect(await bench.take({ count: 9 })).toHaveLength(1);
        await bench.expectWait(3_600_100);
        await bench.settle(costing(0), { tokens: 1e12 });
        await bench.expectWait(2 * 3_600_000 + 1_100);
      });

      it('R-CH5: what another one used is owed still when the dearest gives back all', async () => {
        const dear = costing(1e12);
        await bench.configure({ limits: [perSecond('tokens', 10, 10)] });
        await bench.offer(dear, costing(1));
        const [taken] = await bench.takeIds({ count: 9 });
        expect(taken).toBe(dear.taskId);
        await bench.settle(costing(0), { tokens: 20_000 });
        await bench.settle(dear, { tokens: 0 });
        await bench.expectWait(1_999_100);
      });

      it('R-CH5: of a long window, within ten of them', async () => {
        const limits = [{ unit: 'tokens', rate: 10, perSeconds: 86_400, burst: 10 }];
        await bench.configure({ limits });
        await bench.offer(costing(1e12), costing(0));
        expect(await bench.take({ count: 9 })).toHaveLength(1);
        await bench.expectWait(864_000_000);
      });

      it('R-CH5: of two limits both must hold', async () => {
        await bench.configure({
          limits: [perSecond('requests', 1, 2), perSecond('tokens', 10, 10)],
        });
        await bench.offer(...[6, 6, 1].map((tokens) => costing(tokens)));
        expect(await bench.take({ count: 9 })).toHaveLength(1);
        await bench.expectWait(200);
        await bench.advance(200);
        expect(await bench.take({ count: 9 })).toHaveLength(1);
        await bench.expectWait(800);
      });
    });

    describe('refund', () => {
      it('R-CH5: brings the tokens back when nothing was granted since', async () => {
        await bench.configure({ limits: [perSecond('requests', 1, 1)] });
        const [refused, next] = tasks(2);
        if (refused === undefined || next === undefined) throw new Error('two were made');
        await bench.offer(refused, next);
        await bench.take();
        await bench.expectWait(1000);
        await bench.refund(refused.taskId, refused.taskId);
        expect(await bench.takeIds({ count: 9 })).toEqual([next.taskId]);
        await bench.expectWait(null);
      });

      it('R-CH5: entries of one take come back one by one', async () => {
        const limits = [perSecond('requests', 1, 3), perSecond('tokens', 1, 9)];
        await bench.configure({ limits });
        await bench.offer(...[1, 2, 3, 3, 3, 3].map((tokens) => costing(tokens)));
        const taken = await bench.takeIds({ count: 3 });
        expect(taken).toHaveLength(3);
        for (const taskId of taken) await bench.refund(taskId);
        expect(await bench.take({ count: 9 })).toHaveLength(3);
      });

      it('R-CH5: brings nothing back when something was granted since', async () => {
        await bench.configure({ limits: [perSecond('requests', 1, 2)] });
        await bench.offer(...tasks(4));
        const early = await bench.takeIds();
        const late = await bench.takeIds();
        await bench.refund(...early);
        await bench.expectWait(1000);
        await bench.refund(...late);
        expect(await bench.take({ count: 9 })).toHaveLength(1);
      });

      it('R-CH5: what was confirmed has spent its tokens', async () => {
        await bench.configure({ limits: [perSecond('requests', 1, 1)] });
        await bench.offer(...tasks(2));
        const running = await bench.run();
        await bench.refund(...running);
        await bench.expectWait(1000);
      });
    });

    describe('settlement', () => {
      beforeEach(() => bench.configure({ limits: [perSecond('tokens', 10, 10)] }));

      it('R-CH5: what was not used comes back, up to what the bucket holds', async () => {
        const [first, second] = [costing(8), costing(8)];
        await bench.offer(first, second, costing(10), costing(1));
        await bench.run();
        await bench.expectWait(600);
        await bench.settle(first, { tokens: 2 });
        expect(await bench.run({ count: 9 })).toEqual(idsOf(second));
        await bench.expectWait(1000);
        await bench.advance(900);
        await bench.settle(second, { tokens: 0 });
        expect(await bench.take({ count: 9 })).toHaveLength(1);
        await bench.expectWait(100);
      });

      it('R-CH5: what was used besides is owed', async () => {
        const first = costing(2);
        await bench.offer(first, costing(0));
        await bench.run();
        await bench.settle(first, { tokens: 22 });
        await bench.expectWait(1000 + 200);
      });

      it('R-CH5: also of a task that it does not know any more', async () => {
        const unknown = costing(2);
        await bench.offer(costing(0));
        await bench.settle(unknown, { tokens: 22 });
        await bench.expectWait(1000);
      });

      it('R-CH5: tokens come back once, together with the slot', async () => {
        const first = costing(8);
        await bench.offer(first, costing(9));
        await bench.run();
        await bench.settle(first, { tokens: 6 });
        await bench.settle(first, { tokens: 2 });
        await bench.settle(costing(8), { tokens: 0 });
        await bench.expectWait(500);
      });

      it('R-CH5: counts no requests, and no unit without a limit', async () => {
        const limits = [perSecond('requests', 1, 2)];
        await bench.configure({ limits });
        const first = bench.task();
        await bench.offer(first, ...tasks(2));
        await bench.run();
        await bench.settle(first, { requests: 9, tokens: 1000 });
        expect(await bench.take({ count: 9 })).toHaveLength(1);
      });
    });

    describe('no overtaking', () => {
      /** Two tokens are left, and ten fall due in a second. */
      beforeEach(async () => {
        await bench.configure({ limits: [perSecond('tokens', 10, 10)] });
        await bench.offer(costing(8));
        await bench.take();
      });

      it('R-CH5: a cheaper one in the same lane waits for the dear one before it', async () => {
        const [dear, cheap] = [costing(5), costing(1)];
        await bench.offer(dear, cheap);
        await bench.expectWait(300);
        await bench.advance(300);
        expect(await bench.takeIds({ count: 9 })).toEqual([dear.taskId]);
        await bench.expectWait(100);
      });

      it('R-CH5: a cheaper one in another lane as well, and of less priority', async () => {
        const dear = costing(5);
        const cheap = costing(1, { taskType: 'other', priority: 'low' });
        await bench.offer(dear, cheap);
        await bench.expectWait(300);
        await bench.expectWait(300, { queues: ['q'] });
        await bench.advance(400);
        expect(await bench.takeIds({ count: 9 })).toEqual(idsOf(dear, cheap));
      });

      it('R-CH5: once it was found short, also for a worker that can do only the cheap one', async () => {
        const [dear, cheap] = [costing(5), costing(1, { taskType: 'other' })];
        await bench.offer(dear, cheap);
        await bench.expectWait(300);
        await bench.expectWait(300, { taskTypes: ['other'] });
        await bench.advance(300);
        // It has its tokens now, whether or not somebody comes for it.
        expect(await bench.takeIds({ taskTypes: ['other'] })).toEqual([cheap.taskId]);
        await bench.expectWait(100);
      });

      it('R-CH5: a worker that cannot do the dear one is not held up by what nobody asked for', async () => {
        const [dear, cheap] = [costing(5), costing(1, { taskType: 'other' })];
        await bench.offer(dear, cheap);
        expect(await bench.takeIds({ taskTypes: ['other'] })).toEqual([cheap.taskId]);
      });

      it('R-CH5: what comes before it is not held up, in its own lane or another', async () => {
        await bench.offer(costing(5));
        await bench.expectWait(300);
        const older = costing(1, { taskType: 'other', ageMs: 10 });
        await bench.offer(older);
        expect(await bench.takeIds({ count: 9 })).toEqual([older.taskId]);
        await bench.expectWait(400);
        const urgent = costing(1, { priority: 'high' });
        await bench.offer(urgent);
        expect(await bench.takeIds({ count: 9 })).toEqual([urgent.taskId]);
        await bench.expectWait(500);
      });

      it('R-CH5: an older one that is short takes its place', async () => {
        await bench.offer(costing(5));
        await bench.expectWait(300);
        await bench.offer(costing(4, { taskType: 'other', ageMs: 10 }));
        await bench.expectWait(200, { taskTypes: ['other'] });
        await bench.expectWait(300, { taskTypes: ['t'] });
      });

      it('R-CH5: what waited for the one before waits for this one, and no longer', async () => {
        const [dear, last] = [costing(8), costing(3, { taskType: 'last' })];
        await bench.offer(dear, last);
        await bench.expectWait(600);
        await bench.expectWait(600, { taskTypes: ['last'] });
        await bench.offer(costing(4, { taskType: 'other', ageMs: 10 }));
        await bench.expectWait(200, { taskTypes: ['other'] });
        await bench.advance(200);
        expect(await bench.takeIds({ taskTypes: ['last'] })).toEqual([last.taskId]);
      });

      it('R-CH5: when its tokens are there and nobody comes for it, the next takes its place', async () => {
        const [short, dear] = [costing(3), costing(5, { taskType: 'dear' })];
        await bench.offer(short, dear, costing(1, { taskType: 'cheap' }));
        await bench.expectWait(100, { taskTypes: ['t'] });
        await bench.expectWait(300, { taskTypes: ['dear'] });
        await bench.advance(100);
        await bench.expectWait(200, { taskTypes: ['dear'] });
        await bench.expectWait(200, { taskTypes: ['cheap'] });
        expect(await bench.takeIds({ taskTypes: ['t'] })).toEqual([short.taskId]);
      });

      it('R-CH5: found short during a pause, it is not passed when that ends', async () => {
        const limits = [perSecond('tokens', 10, 10)];
        await bench.offer(costing(5), costing(1, { taskType: 'cheap' }));
        await bench.configure({ limits, paused: true, pausedForMs: 100 });
        await bench.expectWait(300);
        await bench.advance(100);
        await bench.expectWait(200, { taskTypes: ['cheap'] });
      });

      it('R-CH5: a debt that a settlement leaves holds up what had its tokens before', async () => {
        const limits = [perSecond('tokens', 10, 10)];
        await bench.configure({ limits, paused: true, pausedForMs: 100 });
        await bench.offer(costing(1), costing(0, { taskType: 'cheap' }));
        await bench.expectWait(100);
        await bench.settle(costing(0), { tokens: 4 });
        await bench.expectWait(300);
        await bench.advance(100);
        await bench.expectWait(200, { taskTypes: ['cheap'] });
      });

      it('R-CH5: when it is taken, those behind it go in the same take', async () => {
        const [dear, cheap] = [costing(5), costing(1, { taskType: 'other' })];
        await bench.offer(dear, cheap, costing(9, { taskType: 'other' }));
        await bench.expectWait(300);
        await bench.advance(500);
        expect(await bench.takeIds({ count: 9 })).toEqual(idsOf(dear, cheap));
      });

      it('R-CH5: when it is removed, the others go', async () => {
        const [dear, cheap] = [costing(5), costing(1, { taskType: 'other' })];
        await bench.offer(dear, cheap);
        await bench.expectWait(300);
        await bench.expectWait(300);
        const wakes = await bench.listen(() => bench.queue.remove([dear.taskId]));
        expect(wakes).toEqual([{ lanes: [cheap.lane], count: 1 }]);
        expect(await bench.takeIds({ taskTypes: ['other'] })).toEqual([cheap.taskId]);
      });

      it('R-CH5: offered anew, it is not remembered', async () => {
        const [dear, cheap] = [costing(5), costing(1, { taskType: 'other' })];
        await bench.offer(dear, cheap);
        await bench.expectWait(300);
        await bench.queue.remove([dear.taskId]);
        await bench.offer(dear);
        expect(await bench.takeIds({ taskTypes: ['other'] })).toEqual([cheap.taskId]);
      });

      it('R-CH2: a cheaper one that ages past it goes', async () => {
        const ageing = { lowToMediumMs: null, lowToHighMs: 200, mediumToHighMs: null };
        await bench.configure({ limits: [perSecond('tokens', 10, 10)], ageing });
        const aged = costing(1, { priority: 'low' });
        const other = costing(1, { priority: 'low', taskType: 'other' });
        await bench.offer(aged, other, costing(9));
        await bench.expectWait(700);
        await bench.advance(200);
        expect(await bench.takeIds({ count: 9 })).toEqual(idsOf(aged, other));
      });
    });

    describe('changes', () => {
      it('R-CH7: a raised limit counts at once, with the tokens there were', async () => {
        await bench.configure({ limits: [perSecond('requests', 1, 2)] });
        await bench.offer(...tasks(9));
        await bench.take({ count: 2 });
        await bench.expectWait(1000);
        await bench.advance(500);
        await bench.configure({ limits: [perSecond('requests', 10, 9)] });
        await bench.expectWait(50);
      });

      it('R-CH7: a lowered limit lets nothing more through', async () => {
        await bench.configure({ limits: [perSecond('requests', 10, 9)] });
        await bench.offer(...tasks(20));
        await bench.take({ count: 2 });
        await bench.configure({ limits: [perSecond('requests', 1, 3)] });
        expect(await bench.take({ count: 20 })).toHaveLength(3);
        await bench.expectWait(1000);
      });

      it('R-CH7: a new limit starts full, and one that is gone holds nobody', async () => {
        await bench.offer(...tasks(9));
        await bench.configure({ limits: [perSecond('requests', 1, 2)] });
        expect(await bench.take({ count: 9 })).toHaveLength(2);
        await bench.expectWait(1000);
        await bench.configure({});
        expect(await bench.take({ count: 9 })).toHaveLength(7);
      });

      it('R-CH4: goes on from restored levels, debts too', async () => {
        const limits = [perSecond('requests', 1, 5), perSecond('tokens', 10, 10)];
        const levels = [
          { bucket: ownBucket('q', 'requests'), tokens: 1.5 },
          { bucket: ownBucket('q', 'tokens'), tokens: -3 },
          { bucket: ownBucket('unknown', 'tokens'), tokens: -3 },
        ];
        await bench.restore({ queues: [bench.settings({ limits })], levels });
        await bench.offer(...tasks(9));
        await bench.expectWait(300);
        await bench.advance(300);
        expect(await bench.take({ count: 9 })).toHaveLength(1);
        await bench.expectWait(200);
      });
    });

    describe('levels', () => {
      it('R-CH4: tells what changed since it was last asked, as of now', async () => {
        const limits = [perSecond('requests', 1, 5)];
        await bench.configure({ limits }, 'a');
        await bench.configure({ limits }, 'b');
        await bench.queue.levels();
        expect(await bench.queue.levels()).toEqual([]);
        const first = bench.task({ queue: 'a' });
        await bench.offer(first);
        await bench.take();
        await bench.advance(250);
        const bucket = ownBucket('a', 'requests');
        expect(await bench.queue.levels()).toEqual([{ bucket, tokens: 4.25 }]);
        expect(await bench.queue.levels()).toEqual([]);
        await bench.refund(first.taskId);
        expect(await bench.queue.levels()).toEqual([{ bucket, tokens: 5 }]);
        await bench.configure({}, 'a');
        expect(await bench.queue.levels()).toEqual([]);
      });

      it('R-CH5: tells settlements and new limits', async () => {
        const limits = [perSecond('tokens', 10, 10)];
        const bucket = ownBucket('q', 'tokens');
        await bench.configure({ limits });
        expect(await bench.queue.levels()).toEqual([{ bucket, tokens: 10 }]);
        await bench.settle(costing(2), { tokens: 5 });
        expect(await bench.queue.levels()).toEqual([{ bucket, tokens: 7 }]);
        await bench.configure({ limits: [perSecond('tokens', 10, 4)] });
        expect(await bench.queue.levels()).toEqual([{ bucket, tokens: 4 }]);
      });

      it('R-OB5: shows the buckets of a queue in the order of its settings', async () => {
        const limits = [perSecond('tokens', 10, 10), perSecond('requests', 1, 5)];
        await bench.configure({ limits });
        await bench.offer(costing(14));
        await bench.take();
        await bench.advance(500);
        expect((await bench.queue.live('q')).buckets).toEqual([
          {
            bucket: ownBucket('q', 'tokens'),
            tokens: 1,
            limit: limits[0],
            used: 14,
            countedMs: 500,
          },
          {
            bucket: ownBucket('q', 'requests'),
            tokens: 4.5,
            limit: limits[1],
            used: 1,
            countedMs: 500,
          },
        ]);
      });

      it('R-OB5: counts what was granted in the window up to now, as it was settled', async () => {
        const perMinute = (perSeconds: number) => ({
          unit: 'tokens',
          rate: 30,
          perSeconds,
          burst: 30,
        });
        const used = async () => {
          const [bucket] = (await bench.queue.live('q')).buckets;
          return [bucket?.used, bucket?.countedMs];
        };
        await bench.configure({ limits: [perMinute(60)] });
        expect(await used()).toEqual([0, 0]);
        const first = costing(4);
        await bench.offer(first, costing(6));
        await bench.run();
        await bench.advance(30_000);
        expect(await used()).toEqual([4, 30_000]);
        await bench.settle(first, { tokens: 3 });
        const second = await bench.takeIds();
        expect(await used()).toEqual([9, 30_000]);
        const [takenId] = second;
        if (takenId === undefined) throw new Error('it may be taken');
        await bench.refund(takenId);
        expect(await used()).toEqual([3, 30_000]);
        await bench.offer(costing(6));
        await bench.run();
        await bench.advance(37_000);
        // The first grant has left the window, but not the settlement, nor what was taken with it.
        expect(await used()).toEqual([5, 60_000]);
        await bench.configure({ limits: [perMinute(240)] });
        await bench.advance(10_000);
        expect(await used()).toEqual([5, 70_000]);
      });
    });

    describe('wake-ups', () => {
      it('R-CH4: one for a change, however much may go: who takes tells the next', async () => {
        await bench.offer(...tasks(5));
        const lanes = [bench.task().lane];
        const limited = { limits: [perSecond('requests', 1, 3)] };
        expect(await bench.listen(() => bench.configure(limited))).toEqual([{ lanes, count: 1 }]);
        const [first] = await bench.takeIds({ count: 3 });
        if (first === undefined) throw new Error('three may go');
        expect(await bench.listen(() => bench.refund(first))).toEqual([{ lanes, count: 1 }]);
      });

      it('R-CH5: tells what a settlement brings back, and the freed slot with it', async () => {
        await bench.configure({ maxConcurrency: 1, limits: [perSecond('tokens', 10, 10)] });
        const first = costing(10);
        await bench.offer(first, costing(5));
        await bench.run();
        const lanes = [first.lane];
        expect(await bench.listen(() => bench.settle(first, { tokens: 2 }))).toEqual([
          { lanes, count: 1 },
        ]);
        expect(await bench.listen(() => bench.settle(first, { tokens: 20 }))).toEqual([]);
      });
    });
  });
}
