import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sharedBucket } from '../domain/token-bucket.js';
import { idsOf, perSecond } from './limits.contract.js';
import { Workbench, type ReadyQueueUnderTest } from './workbench.contract.js';

const account = [{ use: 'account' }];

export function describeSharedLimits(make: () => Promise<ReadyQueueUnderTest>): void {
  describe('limits that queues share', () => {
    let bench: Workbench;

    beforeEach(async () => {
      bench = await Workbench.open(make);
      for (const name of ['a', 'b']) await bench.configure({ limits: account }, name);
    });

    afterEach(() => bench.queue.close());

    const task = (queue: string, tokens = 0, sketch = {}) =>
      bench.task({ ...sketch, queue, cost: { tokens } });

    async function served(count: number): Promise<string[]> {
      return (await bench.take({ count })).map(({ lane }) => lane.queue);
    }

    it('R-CH4: count for all of them together, who take turns', async () => {
      await bench.share('account', perSecond('requests', 10, 3));
      await bench.offer(...['a', 'a', 'a', 'b', 'b', 'b'].map((name) => task(name)));
      expect(await served(9)).toEqual(['a', 'b', 'a']);
      await bench.expectWait(100);
      await bench.expectWait(100, { queues: ['a'] });
      await bench.advance(200);
      expect(await served(9)).toEqual(['b', 'a']);
    });

    it('R-CH9: hold up no queue that does not use them', async () => {
      await bench.share('account', perSecond('requests', 10, 1));
      await bench.offer(task('a'), task('a'), task('b'), task('free'), task('free'));
      expect(await served(9)).toEqual(['a', 'free', 'free']);
      await bench.configure({}, 'b');
      expect(await served(9)).toEqual(['b']);
      await bench.expectWait(100);
    });

    it('R-CH5: a dear queue is not starved by its cheap neighbour', async () => {
      await bench.share('account', perSecond('tokens', 10, 10));
      await bench.offer(task('b', 8), task('a', 5), ...[1, 2, 3, 4].map(() => task('b', 1)));
      expect(await served(1)).toEqual(['b']);
      await bench.expectWait(300);
      await bench.advance(300);
      expect(await served(9)).toEqual(['a']);
      await bench.expectWait(100);
      // To a worker that cannot take it, the dear one is no hindrance.
      await bench.offer(task('a', 5, { taskType: 'dear' }));
      await bench.advance(100);
      expect(await bench.take({ taskTypes: ['t'] })).toHaveLength(1);
    });

    it('R-CH9: a queue that is closed by itself does not hold up the others', async () => {
      await bench.share('account', perSecond('requests', 10, 5));
      await bench.configure({ limits: [perSecond('requests', 1, 1), ...account] }, 'a');
      await bench.configure({ limits: account, paused: true, pausedForMs: 700 }, 'c');
      await bench.offer(...['a', 'a', 'c', 'b', 'b'].map((name) => task(name)));
      expect(await served(9)).toEqual(['a', 'b', 'b']);
      await bench.expectWait(700);
      await bench.advance(700);
      expect(await served(9)).toEqual(['c']);
      await bench.expectWait(300);
    });

    it('R-CH5: of several, and of its own, all must hold', async () => {
      await bench.share('account', perSecond('requests', 10, 9));
      await bench.share('team', perSecond('tokens', 10, 10));
      const limits = [{ use: 'team' }, perSecond('tokens', 5, 6), ...account];
      await bench.configure({ limits }, 'a');
      await bench.offer(task('a', 6), task('a', 6), task('b', 6), task('b', 6));
      expect(await served(9)).toEqual(['a', 'b', 'b']);
      await bench.expectWait(1200);
      const buckets = (await bench.queue.live('a')).buckets.map(({ tokens }) => tokens);
      expect(buckets).toEqual([4, 0, 6]);
    });

    it('R-CH4: one that is not known gives nothing, until it is', async () => {
      await bench.offer(task('a'), task('b'));
      await bench.expectWait(null);
      expect((await bench.queue.live('a')).buckets).toEqual([]);
      const limit = perSecond('requests', 10, 1);
      const wakes = await bench.listen(() => bench.share('account', limit));
      expect(wakes).toMatchObject([{ count: 1 }]);
      expect(await served(9)).toEqual(['a']);
    });

    it('R-CH7: changed, they count for the next take; an older version does not', async () => {
      const slow = perSecond('requests', 1, 1);
      await bench.share('account', slow);
      await bench.offer(task('a'), task('b'), task('a'));
      expect(await served(9)).toEqual(['a']);
      await bench.expectWait(1000);
      await bench.share('account', perSecond('requests', 10, 1));
      await bench.expectWait(100);
      await bench.queue.configure({
        limits: [{ name: 'account', version: 1, limit: slow }],
        queues: [],
      });
      await bench.expectWait(100);
      await bench.share('account', perSecond('tokens', 1, 1));
      expect(await served(9)).toEqual(['b', 'a']);
    });

    it('R-CH5: are refunded and settled', async () => {
      await bench.share('account', perSecond('tokens', 10, 10));
      const [refused, dear, next] = [task('a', 10), task('b', 10), task('a', 3)];
      await bench.offer(refused, dear, next);
      expect(await bench.takeIds({ count: 9 })).toEqual(idsOf(refused));
      await bench.expectWait(1000);
      const wakes = await bench.listen(() => bench.refund(refused.taskId));
      expect(wakes).toMatchObject([{ count: 1 }]);
      expect(await bench.run({ count: 9 })).toEqual(idsOf(dear));
      await bench.expectWait(300);
      await bench.settle(dear, { tokens: 6 });
      expect(await bench.takeIds({ count: 9 })).toEqual(idsOf(next));
    });

    it('R-CH4: go on from restored levels, and are told when changed', async () => {
      const bucket = sharedBucket('account');
      await bench.restore({
        limits: [{ name: 'account', version: 1, limit: perSecond('requests', 10, 9) }],
        queues: [bench.settings({ limits: account }, 'a')],
        levels: [{ bucket, tokens: -1 }],
      });
      await bench.offer(task('a'), task('a'));
      await bench.expectWait(200);
      await bench.advance(200);
      expect(await served(9)).toEqual(['a']);
      expect(await bench.queue.levels()).toEqual([{ bucket, tokens: 0 }]);
    });

    it('R-CH7: a queue that begins to use one joins those that wait for it', async () => {
      await bench.share('account', perSecond('requests', 10, 1));
      await bench.offer(task('c'), task('c', 0, { taskType: 'other' }), task('a'), task('a'));
      expect(await served(1)).toEqual(['c']);
      await bench.configure({ limits: account }, 'c');
      expect(await served(9)).toEqual(['a']);
      await bench.expectWait(100);
      await bench.advance(100);
      expect(await served(9)).toEqual(['c']);
    });
  });
}
