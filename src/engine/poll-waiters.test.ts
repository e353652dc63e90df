import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { WorkerId } from '../domain/ids.js';
import type { TakeRequest } from '../ready/ready-queue.js';
import type { PollWaiter, WakeUp } from './poll-waiter.js';
import { PollWaiters } from './poll-waiters.js';

const anyWork: TakeRequest = { taskTypes: null, capabilities: [], queues: null, count: 1 };
const plain = { queue: 'q', taskType: 't', capabilities: [] };
const gpu = { ...plain, capabilities: ['gpu'] };

interface Entering {
  readonly worker?: string;
  readonly load?: number;
  readonly sinceMs?: number;
  readonly wakeUp?: WakeUp | null;
  readonly request?: Partial<TakeRequest>;
}

function enter(waiters: PollWaiters, poll: Entering = {}): PollWaiter {
  const { worker = 'w', load = 0, sinceMs = 0, wakeUp = null, request = {} } = poll;
  return waiters.enter({
    workerId: worker as WorkerId,
    load,
    sinceMs,
    wakeUp,
    request: { ...anyWork, ...request },
  });
}

function woken(all: readonly PollWaiter[]): boolean[] {
  return all.map((waiter) => waiter.takeWakeUp() !== null);
}

describe('PollWaiters', () => {
  it('a wake-up that comes before the wait begins ends it at once', async () => {
    const waiters = new PollWaiters();
    const waiter = enter(waiters);
    waiters.wake({ lanes: [plain], count: 1 });
    await waiter.wait(3_600_000);
    expect(waiter.takeWakeUp()?.lanes).toEqual([plain]);
  });

  it('an offer of one wakes one, the least loaded that can take it', () => {
    const waiters = new PollWaiters();
    const busy = enter(waiters, { load: 0.9, request: { capabilities: ['gpu'] } });
    const unable = enter(waiters, { load: 0 });
    const idle = enter(waiters, { load: 0.1, request: { capabilities: ['gpu', 'tpu'] } });
    waiters.wake({ lanes: [gpu], count: 1 });
    expect(woken([busy, unable, idle])).toEqual([false, false, true]);
  });

  it('wakes as many as it has entries for, and says how many', () => {
    const waiters = new PollWaiters();
    const all = [3, 3, 3, 0].map((count) => enter(waiters, { request: { count } }));
    expect(waiters.wake({ lanes: [plain], count: 4 })).toBe(4);
    expect(woken(all).filter(Boolean)).toHaveLength(2);
    expect(waiters.wake({ lanes: [plain], count: 9 })).toBe(3);
    expect(waiters.wake({ lanes: [plain], count: 9 })).toBe(0);
  });

  it('R-CH13: spread goes by load, then by who has waited longest', () => {
    const waiters = new PollWaiters('spread');
    const late = enter(waiters, { worker: 'a', sinceMs: 2 });
    const early = enter(waiters, { worker: 'b', sinceMs: 1, request: { queues: ['q', 'r'] } });
    const busy = enter(waiters, { worker: 'c', load: 0.5 });
    expect(inOrder(waiters, [late, early, busy])).toEqual([early, late, busy]);
  });

  it('R-CH13: concentrate goes by worker, whatever its load', () => {
    const waiters = new PollWaiters('concentrate');
    const second = enter(waiters, { worker: 'b', sinceMs: 1 });
    const first = enter(waiters, { worker: 'a', load: 0.9, sinceMs: 2 });
    const third = enter(waiters, { worker: 'c', request: { queues: ['r', 'q'] } });
    expect(inOrder(waiters, [second, first, third])).toEqual([first, second, third]);
  });

  it('a wake-up that its poll did not use goes to the next', () => {
    const waiters = new PollWaiters();
    const first = enter(waiters);
    waiters.wake({ lanes: [plain], count: 1 });
    const second = enter(waiters, { load: 1 });
    waiters.leave(first);
    expect(woken([second])).toEqual([true]);
  });

  it('also when it had gone to look for it, and got no answer', () => {
    const waiters = new PollWaiters();
    const first = enter(waiters);
    waiters.wake({ lanes: [plain], count: 1 });
    const wakeUp = first.takeWakeUp();
    waiters.leave(first);
    const looking = enter(waiters, { wakeUp });
    const second = enter(waiters, { load: 1 });
    waiters.leave(looking);
    expect(woken([second])).toEqual([true]);
  });

  it('and one that it used does not', () => {
    const waiters = new PollWaiters();
    const first = enter(waiters);
    waiters.wake({ lanes: [plain], count: 1 });
    const looking = enter(waiters, { wakeUp: first.takeWakeUp() });
    waiters.leave(first);
    const second = enter(waiters, { load: 1 });
    waiters.answered(looking, null);
    waiters.leave(looking);
    expect(woken([second])).toEqual([false]);
  });

  it('R-CH3: knows how much of a lane those who wait would take, whoever they are', () => {
    const waiters = new PollWaiters();
    expect([waiters.areAny, waiters.wanted(plain)]).toEqual([false, 0]);
    const polls = [
      enter(waiters, { request: { count: 5 } }),
      enter(waiters, { request: { count: 2, capabilities: ['gpu'] } }),
      enter(waiters, { request: { count: 3, queues: ['other'] } }),
      enter(waiters, { request: { count: 0 } }),
    ];
    expect([waiters.wanted(plain), waiters.wanted(gpu)]).toEqual([7, 2]);
    expect(waiters.wanted({ ...plain, queue: 'other' })).toBe(10);
    for (const poll of polls) waiters.leave(poll);
    expect([waiters.areAny, waiters.wanted(plain)]).toEqual([false, 0]);
  });

  it('R-CH3: counts nobody twice, and nobody who is on the way, in any history', () => {
    const step = fc.record({
      kind: fc.constantFrom('enter', 'leave', 'wake', 'ring'),
      count: fc.integer({ min: 0, max: 4 }),
      nth: fc.nat(9),
      load: fc.nat(3),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const waiters = new PollWaiters();
        const there: PollWaiter[] = [];
        for (const { kind, count, nth, load } of steps) {
          if (kind === 'enter') there.push(enter(waiters, { load, request: { count } }));
          else if (kind === 'wake') waiters.wake({ lanes: [plain], count });
          else if (kind === 'ring') waiters.lookAgain();
          else there.splice(nth, 1).forEach((waiter) => waiters.leave(waiter));
          const still = there.filter(({ place }) => place !== -1);
          const wanted = still.reduce((sum, waiter) => sum + waiter.count, 0);
          expect(waiters.wanted(plain)).toBe(wanted);
        }
        for (const waiter of there) waiters.leave(waiter);
        expect([waiters.areAny, waiters.wanted(plain)]).toEqual([false, 0]);
      }),
    );
  });

  it('news for a worker end its waits and pass nothing on', async () => {
    const waiters = new PollWaiters();
    const told = enter(waiters, { worker: 'told', request: { count: 0 } });
    const other = enter(waiters, { worker: 'other' });
    waiters.wakeWorker('told' as WorkerId);
    await told.wait(3_600_000);
    waiters.leave(told);
    expect(woken([other])).toEqual([false]);
  });
});

/** Wakes one after the other. */
function inOrder(waiters: PollWaiters, all: readonly PollWaiter[]): (PollWaiter | undefined)[] {
  return all.map(() => {
    waiters.wake({ lanes: [plain], count: 1 });
    return all.find((waiter) => waiter.takeWakeUp() !== null);
  });
}

describe('PollWaiters with one filter', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('R-CH4: what one learns is true for all: one looks when a token falls due', () => {
    const waiters = new PollWaiters();
    const request = { queues: ['a', 'b'] };
    const all = [1, 2, 3].map((sinceMs) => enter(waiters, { sinceMs, request }));
    const looking = enter(waiters, { request: { queues: ['b', 'a'] } });
    waiters.answered(looking, 20);
    waiters.leave(looking);
    expect(waiters.shouldLook(enter(waiters, { sinceMs: 4, request }))).toBe(false);
    vi.advanceTimersByTime(19);
    expect(woken(all)).toEqual([false, false, false]);
    vi.advanceTimersByTime(1);
    expect(woken(all)).toEqual([true, false, false]);
  });

  it('an alarm whose poll did not look wakes the next', () => {
    const waiters = new PollWaiters();
    const [first, second] = [enter(waiters, { sinceMs: 1 }), enter(waiters, { sinceMs: 2 })];
    waiters.answered(first, 20);
    vi.advanceTimersByTime(20);
    waiters.leave(first);
    expect(woken([second])).toEqual([true]);
  });

  it('somebody looks after a while, should a wake-up have gone astray or be without an answer', () => {
    const waiters = new PollWaiters();
    const [first, second] = [enter(waiters, { sinceMs: 1 }), enter(waiters, { sinceMs: 2 })];
    waiters.answered(first, null);
    vi.advanceTimersByTime(5_000);
    expect(woken([first, second])).toEqual([true, false]);
    vi.advanceTimersByTime(500);
    expect(woken([first, second])).toEqual([false, true]);
  });

  it('with nobody waiting there is no alarm, and the next one looks', () => {
    const waiters = new PollWaiters();
    const only = enter(waiters);
    waiters.answered(only, 20);
    waiters.leave(only);
    expect(vi.getTimerCount()).toBe(0);
    expect(waiters.shouldLook(enter(waiters))).toBe(true);
  });

  it('who comes while those are on their way whom an offer has woken waits, unless it is for more', () => {
    const waiters = new PollWaiters();
    waiters.answered(enter(waiters, { worker: 'a', request: { count: 2 } }), null);
    enter(waiters, { worker: 'b', load: 1 });
    waiters.wake({ lanes: [plain], count: 2 });
    expect(waiters.shouldLook(enter(waiters, { load: 1 }))).toBe(false);
    waiters.wake({ lanes: [plain], count: 9 });
    expect(waiters.shouldLook(enter(waiters))).toBe(true);
  });

  it('there is more than was taken: whoever comes looks', () => {
    const waiters = new PollWaiters();
    const [first, second] = [enter(waiters), enter(waiters)];
    waiters.answered(first, null);
    waiters.answered(second, 'now');
    expect(waiters.shouldLook(enter(waiters))).toBe(true);
  });

  it('an answer from before a wake-up does not close what the wake-up opened', () => {
    const waiters = new PollWaiters();
    const looking = enter(waiters);
    waiters.wake({ lanes: [plain], count: 2 });
    waiters.answered(looking, null);
    expect(waiters.shouldLook(enter(waiters))).toBe(true);
  });

  it('who could take what another was woken for looks when that one learned to', () => {
    const waiters = new PollWaiters();
    const other = enter(waiters, { load: 1, request: { queues: ['q'] } });
    const first = enter(waiters);
    waiters.answered(other, null);
    waiters.answered(first, null);
    waiters.wake({ lanes: [plain], count: 1 });
    const looking = enter(waiters, { wakeUp: first.takeWakeUp() });
    waiters.answered(looking, 30);
    // Its worker goes away: nobody else with its filter would look.
    waiters.leave(first);
    waiters.leave(looking);
    vi.advanceTimersByTime(30);
    expect(woken([other])).toEqual([true]);
  });

  it('after a rebuild one of each filter looks', () => {
    const waiters = new PollWaiters();
    const all = [undefined, undefined, ['q']].map((queues) =>
      enter(waiters, { request: queues === undefined ? {} : { queues } }),
    );
    waiters.lookAgain();
    expect(woken(all).filter(Boolean)).toHaveLength(2);
  });
});
