import { describe, expect, it } from 'vitest';
import { until } from '../../test/support/until.js';
import { liveQueue } from '../ready/memory/live-queue.js';
import { LiveQueues } from './live-queues.js';

/** A ready queue that counts who asks it. */
class Asked {
  reads: string[] = [];
  atOnce = 0;
  mostAtOnce = 0;
  trouble: () => string | null = () => null;
  running = 0;

  live = async (queue: string) => {
    this.reads.push(queue);
    this.atOnce += 1;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.atOnce);
    await new Promise((resolve) => setImmediate(resolve));
    this.atOnce -= 1;
    return { ...liveQueue(null, 0), running: this.running };
  };
}

function names(count: number, prefix = 'q'): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}${String(index)}`);
}

describe('R-HA3: the live state of queues', () => {
  it('costs the ready queue the same for 30 readers of a list as for one, ten reads at a time', async () => {
    const ready = new Asked();
    const live = new LiveQueues(ready);
    const lists = Array.from({ length: 30 }, () => live.latelyUnlessBusy(names(100)));
    for (const list of await Promise.all(lists)) expect(list.size).toBe(100);
    expect(ready.reads).toHaveLength(100);
    expect(ready.mostAtOnce).toBe(10);
    await live.lately(names(100).slice(-5));
    expect(ready.reads).toHaveLength(100);
  });

  it('of one queue is read after the question, and once for all who ask meanwhile', async () => {
    const ready = new Asked();
    const live = new LiveQueues(ready);
    expect(await live.now('q')).toMatchObject({ running: 0 });
    ready.running = 1;
    expect(await live.now('q')).toMatchObject({ running: 1 });
    const before = ready.reads.length;
    await Promise.all(Array.from({ length: 30 }, () => live.nowUnlessBusy('q')));
    expect(ready.reads.length).toBe(before + 1);
  });

  it('of one queue does not wait until a long list is read', async () => {
    const ready = new Asked();
    const live = new LiveQueues(ready);
    const list = live.lately(names(500));
    await live.now('mine');
    expect(ready.reads.length).toBeLessThanOrEqual(20);
    expect((await list).size).toBe(500);
  });

  it('of many is read at most a thousand times a second, but for the first 300', async () => {
    const live = new LiveQueues(new Asked());
    const beganMs = performance.now();
    await live.allNow(names(600));
    // The last slice is followed by no rest.
    expect(performance.now() - beganMs).toBeGreaterThan(250);
    await live.allNow(names(300, 'more'));
    expect(performance.now() - beganMs).toBeGreaterThan(550);
  });

  it('is refused with a hint while too many wait, but not to who changed a queue', async () => {
    const ready = new Asked();
    const live = new LiveQueues(ready);
    const busy = [live.allNow(names(2_000)), ...names(100, 's').map((name) => live.now(name))];
    const refusal = { code: 'unavailable', retryAfterSeconds: 1 };
    expect(() => live.nowUnlessBusy('other')).toThrow(expect.objectContaining(refusal));
    expect(() => live.latelyUnlessBusy(['other'])).toThrow(expect.objectContaining(refusal));
    const written = live.now('other');
    await until('one queue to be read', () => ready.reads.includes('s0'));
    expect(await written).toMatchObject({ running: 0 });
    ready.trouble = () => 'it is away';
    await Promise.all(busy);
  });

  it('is empty while the ready queue is away, which is not asked', async () => {
    const ready = new Asked();
    ready.running = 1;
    ready.trouble = () => 'it is away';
    expect(await new LiveQueues(ready).now('q')).toMatchObject({ running: 0 });
    expect(ready.reads).toEqual([]);
  });

  it('that can not be read is told to who asked, and is read again for the next', async () => {
    const ready = new Asked();
    const live = new LiveQueues({
      trouble: () => null,
      live: async (queue) => {
        if (queue === 'bad') throw new Error('a fault');
        return ready.live(queue);
      },
    });
    const [bad, good] = await Promise.allSettled([live.now('bad'), live.now('good')]);
    expect([bad.status, good.status]).toEqual(['rejected', 'fulfilled']);
    expect(await live.now('good')).toMatchObject({ running: 0 });
  });
});
