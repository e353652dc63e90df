import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  openTestReadyQueues,
  type TestReadyQueues,
} from '../../../test/support/redis-ready-queues.js';
import { until } from '../../../test/support/until.js';
import { ManualClock } from '../../runtime/clock.js';
import type { ReadyState, Taken, Wake } from '../ready-queue.js';
import { anyWork, blank, Workbench } from '../workbench.contract.js';
import type { RedisReadyQueue } from './redis-ready-queue.js';

/** Two servers' ready queues over one Redis. */
describe('two servers', () => {
  const clock = new ManualClock();
  let opened: TestReadyQueues;
  let here: RedisReadyQueue;
  let there: RedisReadyQueue;
  let bench: Workbench;

  beforeEach(async () => {
    opened = await openTestReadyQueues(2, clock);
    const [first, second] = opened.queues;
    if (first === undefined || second === undefined) throw new Error('there are two');
    [here, there] = [first, second];
    bench = new Workbench({
      queue: here,
      nowMs: () => clock.nowMs(),
      advance: (ms) => clock.advance(ms),
      driftMs: 0,
    });
  });

  afterEach(() => opened.close());

  async function restore(state: Partial<ReadyState> = {}): Promise<void> {
    const full = { ...blank, ...state };
    expect(await here.beginRestore(full.generation)).toBe('yours');
    expect(await here.restore(full)).toBe(true);
  }

  async function take(queue: RedisReadyQueue, count: number): Promise<readonly Taken[]> {
    const answer = await queue.take({ ...anyWork, count });
    return answer.kind === 'taken' ? answer.entries : [];
  }

  it('R-RE7: one of those who begin a restore at once gets it', async () => {
    const answers = await Promise.all([here.beginRestore(1), there.beginRestore(1)]);
    expect([...answers].sort()).toEqual(['busy', 'yours']);
    const [winner, loser] = answers[0] === 'yours' ? [here, there] : [there, here];
    expect(await winner.beginRestore(1)).toBe('yours');
    expect(await loser.restore(blank)).toBe(false);
    expect(await winner.restore(blank)).toBe(true);
    expect(await loser.beginRestore(1)).toBe('open');
    expect(await winner.restore({ ...blank, generation: 2 })).toBe(false);
  });

  it('R-RE7: contents of another generation than that of Postgres are restored anew', async () => {
    await restore();
    expect(await there.beginRestore(2)).toBe('yours');
    expect(await here.take(anyWork)).toEqual({ kind: 'rebuild' });
    expect(await here.configure({ limits: [], queues: [bench.settings({})] })).toBeNull();
    expect(await there.restore({ ...blank, generation: 2 })).toBe(true);
    expect(await here.configure({ limits: [], queues: [bench.settings({})] })).not.toBeNull();
    expect(await here.beginRestore(2)).toBe('open');
  });

  it('R-CH12: others are woken for what nobody here waits for', async () => {
    const { lane } = bench.task();
    const woken: Wake[] = [];
    here.onWake(() => expect.fail('it is for others'));
    there.onWake((wake) => woken.push(wake));
    await until('the bus to carry', () => {
      here.wakeOthers({ lanes: [lane], count: 2 });
      return woken.length > 0;
    });
    expect(woken[0]).toEqual({ lanes: [lane], count: 2 });
  });

  it('R-RE7: who took too long finds another at it, and spoils nothing', async () => {
    expect(await here.beginRestore(1)).toBe('yours');
    await opened.flush();
    expect(await there.beginRestore(1)).toBe('yours');
    expect(await here.restore(blank)).toBe(false);
    expect(await there.restore({ ...blank, generation: 2 })).toBe(true);
    expect(await here.take(anyWork)).toEqual({ kind: 'wait', waitMs: null });
  });

  it('R-CH12: what one takes the other does not', async () => {
    await restore();
    const offers = Array.from({ length: 400 }, (_, index) =>
      bench.task({ queue: `q${index % 7}`, taskType: `t${index % 3}` }),
    );
    const half = offers.length / 2;
    await Promise.all([here.offer(offers.slice(0, half)), there.offer(offers.slice(half))]);
    const taken = await Promise.all(
      Array.from({ length: 60 }, (_, index) => take(index % 2 === 0 ? here : there, 8)),
    );
    const ids = taken.flat().map(({ taskId }) => taskId);
    expect(ids).toHaveLength(400);
    expect(new Set(ids).size).toBe(400);
  });

  it('R-CH4: a limit holds for both together', async () => {
    const limit = { unit: 'requests', rate: 10, perSeconds: 1, burst: 10 };
    await restore({ queues: [bench.settings({ limits: [limit] })] });
    await here.offer(Array.from({ length: 40 }, () => bench.task()));
    const taken = await Promise.all(
      Array.from({ length: 40 }, (_, index) => take(index % 2 === 0 ? here : there, 1)),
    );
    expect(taken.flat()).toHaveLength(10);
    expect(await there.take(anyWork)).toEqual({ kind: 'wait', waitMs: 100 });
  });

  it('R-RE9: probes are counted for both together', async () => {
    await restore();
    await here.offer(Array.from({ length: 40 }, () => bench.task()));
    const queues = [bench.settings({ probes: 3 })];
    const tell = (queue: RedisReadyQueue) => queue.configure({ limits: [], queues });
    await tell(here);
    const taken = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const [one, other] = index % 2 === 0 ? [here, there] : [there, here];
        await tell(other);
        return take(one, 2);
      }),
    );
    expect(taken.flat()).toHaveLength(3);
    await there.refund(taken.flat());
    expect(await take(here, 9)).toHaveLength(3);
  });

  it('R-CH7: settings count everywhere, and an older version nowhere', async () => {
    await restore();
    await here.offer([bench.task()]);
    const older = bench.settings({ paused: false });
    await here.configure({ limits: [], queues: [bench.settings({ paused: true })] });
    await there.configure({ limits: [], queues: [older] });
    expect(await take(there, 1)).toEqual([]);
    await there.configure({ limits: [], queues: [bench.settings({})] });
    expect(await take(here, 1)).toHaveLength(1);
  });

  it('a wake-up that nobody here wants is heard there', async () => {
    await restore();
    const [heardHere, heardThere]: [Wake[], Wake[]] = [[], []];
    here.onWake((wake) => {
      heardHere.push(wake);
      return 1;
    });
    there.onWake((wake) => {
      heardThere.push(wake);
      return 0;
    });
    const offers = [bench.task(), bench.task(), bench.task()];
    const lanes = [bench.task().lane];
    await until('the bus to carry', async () => {
      await here.offer(offers);
      await here.remove(offers.map(({ taskId }) => taskId));
      return heardThere.length > 0;
    });
    expect(heardHere[0]).toEqual({ lanes, count: 3 });
    expect(heardThere[0]).toEqual({ lanes, count: 2 });
  });

  it('R-CH4: each is told of the levels that changed since it asked itself', async () => {
    const limit = { unit: 'requests', rate: 10, perSeconds: 1, burst: 10 };
    await restore({ queues: [bench.settings({ limits: [limit] })] });
    expect(await here.levels()).toMatchObject([{ tokens: 10 }]);
    expect(await there.levels()).toMatchObject([{ tokens: 10 }]);
    await here.offer([bench.task()]);
    await take(there, 1);
    expect(await here.levels()).toMatchObject([{ tokens: 9 }]);
    expect(await here.levels()).toEqual([]);
    expect(await there.levels()).toMatchObject([{ tokens: 9 }]);
  });
});
