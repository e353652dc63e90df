import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { defaultQueueSettings } from '../domain/queue-settings.js';
import type { Left, Offer, Position, ReadyQueue, Stretch, Window } from './ready-queue.js';
import { Workbench, type ReadyQueueUnderTest } from './workbench.contract.js';

const window: Window = {
  lane: { queue: 'q', taskType: 't', capabilities: [] },
  priority: 'medium',
};

/** What of a window's line is held, what is left, and how the rest comes in. */
export function describeLine(make: () => Promise<ReadyQueueUnderTest>): void {
  describe('the line of a window', () => {
    let bench: Workbench;
    let queue: ReadyQueue;

    beforeEach(async () => {
      bench = await Workbench.open(make);
      queue = bench.queue;
    });

    afterEach(() => queue.close());

    const task = (...sketch: Parameters<Workbench['task']>) => bench.task(...sketch);
    const offer = (...offers: Offer[]) => bench.offer(...offers);
    const takeIds = (count: number) => bench.takeIds({ count });

    async function look(at: Window = window) {
      const [found] = await queue.look([at]);
      if (found === undefined) throw new Error('a look was not answered');
      return found;
    }

    async function left(): Promise<Left> {
      const found = await look();
      if (found.left === null) throw new Error('nothing was left');
      return found.left;
    }

    async function beginFeed(): Promise<number> {
      const [found] = await queue.beginFeed([window]);
      if (!found?.left) throw new Error('nothing was left');
      return found.left.round;
    }

    async function feed(offers: readonly Offer[], change: Partial<Stretch> = {}) {
      const round = change.round ?? (await beginFeed());
      const answer = await queue.feed([{ window, offers, next: null, ...change, round }]);
      if (answer.kind !== 'offered') throw new Error(`the feed was answered ${answer.kind}`);
      return answer.outcomes;
    }

    /** A full window of two, and the given number that were left behind it. */
    async function fill(more: number): Promise<{ held: Offer[]; rest: Offer[] }> {
      await bench.configure({ maxReady: 2 });
      const held = [task(), task()];
      const rest = Array.from({ length: more }, () => task());
      await offer(...held, ...rest);
      return { held, rest };
    }

    it('R-CH8: leaves what passes max_ready of a lane and priority, and nothing else', async () => {
      await bench.configure({ maxReady: 2 });
      const outcomes = await offer(
        task(),
        task(),
        task(),
        task({ priority: 'low' }),
        task({ taskType: 'other' }),
        task({ capabilities: ['gpu'] }),
        task({ queue: 'neighbour' }),
      );
      expect(outcomes.map((outcome) => outcome === 'left')).toEqual([
        false,
        false,
        true,
        false,
        false,
        false,
        false,
      ]);
      expect(await queue.listBehind()).toEqual([window]);
    });

    it('R-CH8: nobody comes in before those that were left, whatever the room', async () => {
      const { rest } = await fill(1);
      await takeIds(2);
      expect(await offer(task())).toEqual(['left']);
      expect(await feed(rest, { next: after(rest) })).toEqual(['accepted']);
      expect(await takeIds(9)).toEqual(ids(rest));
    });

    it('R-CH8: a window that was fed to the end takes offers again', async () => {
      const { rest } = await fill(1);
      await takeIds(2);
      expect(await feed(rest)).toEqual(['accepted']);
      expect((await look()).left).toBeNull();
      expect(await queue.listBehind()).toEqual([]);
      expect(await offer(task())).toEqual(['accepted']);
    });

    it('R-CH8: a lower max_ready drops nothing, only refuses', async () => {
      const held = [task(), task(), task()];
      await offer(...held);
      await bench.configure({ maxReady: 1 });
      expect(await offer(task())).toEqual(['left']);
      expect((await look()).room).toBe(0);
      expect(await takeIds(9)).toEqual(ids(held));
    });

    it('R-CH8: tells the room of every window in the order asked, and from where rows were left', async () => {
      await bench.configure({ maxReady: 3 });
      const { lane } = window;
      const offers = [task(), task(), task(), task()];
      await offer(...offers, task({ priority: 'low' }));
      const looks = await queue.look([
        { lane, priority: 'low' },
        window,
        { lane, priority: 'high' },
        { lane: { ...lane, taskType: 'other' }, priority: 'medium' },
        { lane: { ...lane, queue: 'unknown' }, priority: 'medium' },
      ]);
      expect(looks.map(({ room }) => room)).toEqual([2, 0, 3, 3, defaultQueueSettings.maxReady]);
      expect(looks.map((one) => one.left?.from ?? null)).toEqual([
        null,
        placeOf(offers[3]),
        null,
        null,
        null,
      ]);
    });

    it('R-CH1: one that is older than the youngest of a full window takes its place', async () => {
      const { held } = await fill(0);
      const retried = task({ ageMs: 9_000 });
      expect(await offer(retried)).toEqual(['accepted']);
      expect((await look()).left?.from).toEqual(placeOf(held[1]));
      expect(await queue.missing(ids(held))).toEqual(ids(held.slice(1)));
      expect(await takeIds(9)).toEqual(ids([retried, ...held.slice(0, 1)]));
      expect(await feed(held)).toEqual(['held', 'accepted']);
    });

    it('R-CH1: one that is older than what was left comes in where there is room', async () => {
      const { held } = await fill(1);
      await takeIds(1);
      const retried = task({ ageMs: 9_000 });
      expect(await offer(retried)).toEqual(['accepted']);
      expect(await takeIds(9)).toEqual(ids([retried, ...held.slice(1)]));
    });

    it('R-CH8: what was left while a stretch was read is not passed by', async () => {
      const { rest } = await fill(2);
      await takeIds(2);
      const round = await beginFeed();
      // Committed before the last of the stretch and not seen by whoever read that.
      const late = task({ ageMs: 5 });
      await queue.leave([late]);
      await feed(rest, { round });
      expect((await left()).from).toEqual(placeOf(late));
      await takeIds(2);
      expect(await feed([late, ...rest])).toEqual(['accepted', 'held', 'held']);
      expect((await look()).left).toBeNull();
    });

    it('R-CH8: of two feeds of one round the second is an offer like others', async () => {
      const { rest } = await fill(3);
      await takeIds(2);
      const round = await beginFeed();
      const [first, second] = rest;
      if (first === undefined || second === undefined) throw new Error('too few');
      expect(await feed([first], { round, next: after([first]) })).toEqual(['accepted']);
      expect(await feed([second], { round })).toEqual(['left']);
      expect((await left()).from).toEqual(placeOf(second));
    });

    it('R-CH8: a feed that began before another did is an offer like others', async () => {
      const { rest } = await fill(1);
      await takeIds(2);
      const early = await beginFeed();
      await beginFeed();
      expect(await feed(rest, { round: early })).toEqual(['left']);
      expect((await left()).from).toEqual(placeOf(rest[0]));
    });

    it('R-CH8: a stretch that finds no room is left from there on', async () => {
      const { held, rest } = await fill(2);
      await takeIds(1);
      expect(await feed(rest)).toEqual(['accepted', 'left']);
      expect((await left()).from).toEqual(placeOf(rest[1]));
      expect(await takeIds(9)).toEqual(ids([...held.slice(1), ...rest.slice(0, 1)]));
    });

    it('R-CH8: holds what a feed names again once', async () => {
      const { rest } = await fill(1);
      await takeIds(2);
      expect(await feed([...rest, ...rest])).toEqual(['accepted', 'held']);
    });

    it('R-RE7: after a restore the lines of the windows named are fed from the beginning', async () => {
      await bench.restore({ behind: [window] });
      const line = [task({ ageMs: 50 }), task()];
      expect(await offer(...line)).toEqual(['left', 'left']);
      expect(await offer(task({ taskType: 'other' }))).toEqual(['accepted']);
      expect(await feed(line, { next: after(line) })).toEqual(['accepted', 'accepted']);
      expect(await bench.takeIds({ count: 9, taskTypes: ['t'] })).toEqual(ids(line));
    });

    it('R-RE7: a restore forgets what was left before', async () => {
      await fill(1);
      await bench.restore();
      expect(await queue.listBehind()).toEqual([]);
      expect(await offer(task())).toEqual(['accepted']);
    });

    it('R-RE7: nothing is fed into one that is closed, and nothing is lost', async () => {
      const fresh = await make();
      const stretch = { window, round: 1, offers: [task()], next: null };
      expect(await fresh.queue.feed([stretch])).toEqual({ kind: 'rebuild' });
      expect(await fresh.queue.leave([task()])).toBe(false);
      await fresh.queue.close();
    });

    it('wakes for what was fed as for what was offered', async () => {
      const { rest } = await fill(2);
      await takeIds(2);
      const wakes = await bench.listen(() => feed(rest));
      expect(wakes).toEqual([{ lanes: [window.lane], count: 2 }]);
    });
  });
}

function ids(offers: readonly Offer[]) {
  return offers.map(({ taskId }) => taskId);
}

function placeOf(offer: Offer | undefined): Position {
  if (offer === undefined) throw new Error('there is no such offer');
  return { eligibleAtMs: offer.eligibleAtMs, seq: offer.seq };
}

function after(offers: readonly Offer[]): Position {
  const { eligibleAtMs, seq } = placeOf(offers.at(-1));
  return { eligibleAtMs, seq: seq + 1 };
}
