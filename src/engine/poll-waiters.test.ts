import { describe, expect, it } from 'vitest';
import type { WorkerId } from '../domain/ids.js';
import type { TakeRequest } from '../ready/ready-queue.js';
import { PollWaiters, type PollWaiter } from './poll-waiters.js';

const anyWork: TakeRequest = { taskTypes: null, capabilities: [], queues: null, count: 1 };
const plain = { queue: 'q', taskType: 't', capabilities: [] };
const gpu = { ...plain, capabilities: ['gpu'] };

function enter(
  waiters: PollWaiters,
  poll: { worker?: string; load?: number; request?: Partial<TakeRequest> } = {},
): PollWaiter {
  const { worker = 'w', load = 0, request = {} } = poll;
  return waiters.enter({
    workerId: worker as WorkerId,
    load,
    request: { ...anyWork, ...request },
  });
}

describe('PollWaiters', () => {
  it('a wake-up that comes before the wait begins ends it at once', async () => {
    const waiters = new PollWaiters();
    const waiter = enter(waiters);
    waiters.wake({ lanes: [plain], count: 1 });
    await waiter.wait(3_600_000);
    expect(waiter.takeWake()).toEqual({ lanes: [plain], count: 1 });
  });

  it('an offer of one wakes one, the least loaded that can take it', () => {
    const waiters = new PollWaiters();
    const busy = enter(waiters, { load: 0.9, request: { capabilities: ['gpu'] } });
    const unable = enter(waiters, { load: 0 });
    const idle = enter(waiters, { load: 0.1, request: { capabilities: ['gpu'] } });
    waiters.wake({ lanes: [gpu], count: 1 });
    expect([busy, unable, idle].map((waiter) => waiter.takeWake() !== null)).toEqual([
      false,
      false,
      true,
    ]);
  });

  it('wakes as many as it has entries for', () => {
    const waiters = new PollWaiters();
    const all = [3, 3, 3, 0].map((count) => enter(waiters, { request: { count } }));
    waiters.wake({ lanes: [plain], count: 4 });
    expect(all.filter((waiter) => waiter.takeWake() !== null)).toHaveLength(2);
  });

  it('a wake-up that its poll did not use goes to the next', () => {
    const waiters = new PollWaiters();
    const first = enter(waiters);
    waiters.wake({ lanes: [plain], count: 1 });
    const second = enter(waiters, { load: 1 });
    waiters.leave(first);
    expect(second.takeWake()).not.toBeNull();
  });

  it('and one that it used does not', () => {
    const waiters = new PollWaiters();
    const first = enter(waiters);
    waiters.wake({ lanes: [plain], count: 1 });
    const second = enter(waiters);
    first.takeWake();
    waiters.leave(first);
    expect(second.takeWake()).toBeNull();
  });

  it('news for a worker end its waits and pass nothing on', async () => {
    const waiters = new PollWaiters();
    const told = enter(waiters, { worker: 'told', request: { count: 0 } });
    const other = enter(waiters, { worker: 'other' });
    waiters.wakeWorker('told' as WorkerId);
    await told.wait(3_600_000);
    waiters.leave(told);
    expect(other.takeWake()).toBeNull();
  });
});
