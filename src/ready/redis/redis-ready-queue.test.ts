import { randomBytes } from 'node:crypto';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { defaultQueueSettings, type QueueSettings } from '../../domain/queue-settings.js';
import { ownBucket, sharedBucket } from '../../domain/token-bucket.js';
import { LocalBus } from '../../runtime/bus.js';
import { ManualClock } from '../../runtime/clock.js';
import { silentLog } from '../../runtime/log.js';
import { agreeOnRandomHistories } from '../random-histories.contract.js';
import { describeReadyQueueContract } from '../ready-queue.contract.js';
import type { Configuration, ConfiguredQueue } from '../ready-queue.js';
import {
  anyWork,
  blank,
  offerMaker,
  restore,
  Workbench,
  type ReadyQueueUnderTest,
} from '../workbench.contract.js';
import { openRedis, type RedisConnection } from './connection.js';
import { RedisReadyQueue } from './redis-ready-queue.js';
import { layout, ScriptRunner } from './script-runner.js';
import { scripts } from './scripts.js';
import { withFewSteps } from './step-count.contract.js';

let connection: RedisConnection;

beforeAll(async () => {
  connection = await openRedis(inject('redisUrl'), silentLog);
});

afterAll(() => connection.close());

function newPrefix(): string {
  return `sluice:{${randomBytes(6).toString('hex')}}:`;
}

interface RedisQueueUnderTest extends ReadyQueueUnderTest {
  readonly clock: ManualClock;
  readonly prefix: string;
}

async function make(through = connection): Promise<RedisQueueUnderTest> {
  const clock = new ManualClock();
  const prefix = newPrefix();
  const queue = new RedisReadyQueue({
    connection: through,
    bus: new LocalBus(),
    prefix,
    clock,
    log: silentLog,
  });
  return {
    queue,
    clock,
    prefix,
    nowMs: () => clock.nowMs(),
    advance: (ms) => clock.advance(ms),
    driftMs: 0,
    lose: async () => {
      await connection.client.hdel(`${prefix}${layout}meta`, 'generation');
    },
    audit: async () => {
      const runner = new ScriptRunner({ connection, prefix, clock, log: silentLog });
      expect(await runner.run(scripts.audit, '0', 100)).toBe('0');
    },
  };
}

async function countKeys(prefix: string): Promise<number> {
  let count = 0;
  const client = connection.client as Redis;
  for await (const keys of client.scanStream({ match: `${prefix}*`, count: 1_000 })) {
    count += (keys as string[]).length;
  }
  return count;
}

describeReadyQueueContract('RedisReadyQueue', () => make());

describe('RedisReadyQueue', () => {
  it('R-CH10: answers random histories as a queue that sorts everything each time', async () => {
    await agreeOnRandomHistories(() => make(), 200);
  });

  it.each([0, 100])(
    'R-CH10 R-HA3: answers them the same when scripts end after %i steps, and others go on',
    async (steps) => {
      const through = withFewSteps(connection, steps);
      // Several scripts wake by turns.
      await agreeOnRandomHistories(() => make(through), 30, { comparesWakes: false });
    },
  );

  it('R-HA5: an audit finds nothing missing when a parked queue gets a less urgent task', async () => {
    const bench = await Workbench.open(() => make());
    await bench.configure({ limits: [{ unit: 'requests', rate: 1, perSeconds: 1, burst: 1 }] });
    const high = Array.from({ length: 4 }, () => bench.task({ priority: 'high' }));
    await bench.offer(...high);
    expect(await bench.take({ count: 5 })).toHaveLength(1);
    await bench.offer(bench.task({ taskType: 'other' }));
    await bench.advance(1_000);
    expect(await bench.take({ count: 5 })).toHaveLength(1);
    await bench.subject.audit?.();
  });

  it('R-LA3: positions that are asked for together are one script', async () => {
    const subject = await make();
    const { queue } = subject;
    await restore(subject);
    const offer = offerMaker();
    const offers = Array.from({ length: 50 }, () => offer());
    await queue.offer(offers);
    const run = vi.spyOn(ScriptRunner.prototype, 'run');
    onTestFinished(() => {
      run.mockRestore();
    });
    await Promise.all(offers.map(({ taskId }) => queue.position(taskId, 1_000)));
    expect(run).toHaveBeenCalledTimes(1);
  });

  it('R-CH8: 50,000 queues that came and went leave a bounded number of keys', async () => {
    const subject = await make();
    const { queue, prefix } = subject;
    const offer = offerMaker();
    await restore(subject);
    const batch = 1_000;
    for (let from = 0; from < 50_000; from += batch) {
      const offers = Array.from({ length: batch }, (_, index) =>
        offer({ queue: `q${from + index}`, taskType: `t${(from + index) % 20_000}` }),
      );
      await queue.offer(offers);
      // Whatever was forgotten to make room for it, the newest is found.
      const taskTypes = offers.slice(-1).map(({ lane }) => lane.taskType);
      const answer = await queue.take({ ...anyWork, taskTypes });
      if (answer.kind !== 'taken') throw new Error(`the take was answered ${answer.kind}`);
      await queue.refund(answer.entries);
      await queue.remove(offers.map(({ taskId }) => taskId));
    }
    const { client } = connection;
    expect(await client.hlen(`${prefix}${layout}states`)).toBeLessThanOrEqual(10_001);
    expect(await client.zcard(`${prefix}${layout}sources`)).toBeLessThanOrEqual(10_000);
    // Its mark.
    expect(await client.hlen(`${prefix}${layout}windows`)).toBe(1);
    expect(await countKeys(prefix)).toBeLessThanOrEqual(20);
    // What is left is in the registers: the next restore finds it.
    await restore(subject, { generation: 2 });
    // Those that are always there.
    expect(await countKeys(prefix)).toBe(11);
  });

  describe('R-HA5: a change of so many lanes that they are built anew', () => {
    const own = { unit: 'requests', rate: 10, perSeconds: 1, burst: 1 };
    const shared = { name: 'x', version: 1, limit: own };
    const manyTypes = Array.from({ length: 301 }, (_, index) => `t${index}`);

    function settingsOf(version: number, change: Partial<QueueSettings>): ConfiguredQueue {
      const settings = { ...defaultQueueSettings, ...change };
      return { name: 'q', version, settings, pausedForMs: null, probes: null };
    }

    /** The change is refused with the contents; what is restored then has it, and its bucket is full. */
    async function refuseAndRestore(before: ConfiguredQueue[], change: Configuration) {
      const subject = await make();
      const { queue } = subject;
      const offer = offerMaker();
      await restore(subject, { queues: before });
      await queue.offer(manyTypes.map((taskType) => offer({ taskType })));
      expect(await queue.configure(change)).toBeNull();
      const queues = change.queues.length > 0 ? change.queues : before;
      expect(await queue.beginRestore(2)).toBe('yours');
      expect(await queue.restore({ ...blank, ...change, queues, generation: 2 })).toBe(true);
      await queue.offer([offer(), offer()]);
      expect(await queue.take(anyWork)).toMatchObject({ kind: 'taken', waitMs: 100 });
      expect(await queue.take(anyWork)).toEqual({ kind: 'wait', waitMs: 100 });
    }

    it('adds a limit of its own to a queue, and changes its ageing', async () => {
      const ageing = { ...defaultQueueSettings.ageing, mediumToHighMs: 5_000 };
      const changed = settingsOf(1, { limits: [own], ageing });
      await refuseAndRestore([], { limits: [], queues: [changed] });
    });

    it('adds a limit of its own and a shared one', async () => {
      const changed = settingsOf(1, { limits: [own, { use: 'x' }] });
      await refuseAndRestore([], { limits: [shared], queues: [changed] });
    });

    it('makes a shared limit that is used already', async () => {
      const users = [settingsOf(1, { limits: [{ use: 'x' }] })];
      await refuseAndRestore(users, { limits: [shared], queues: [] });
    });
  });

  describe('R-HA5: a bucket without its tokens', () => {
    const limit = { unit: 'requests', rate: 10, perSeconds: 1, burst: 1 };
    const settings = { ...defaultQueueSettings, limits: [limit] };
    const queues = [{ name: 'q', version: 1, settings, pausedForMs: null, probes: null }];
    const name = ownBucket('q', 'requests');

    it('is a part of open contents that is missing', async () => {
      const subject = await make();
      const { queue, prefix } = subject;
      await restore(subject, { queues });
      await queue.offer([offerMaker()()]);
      await connection.client.hdel(`${prefix}${layout}b:${name}`, 'level', 'at');
      expect(await queue.take(anyWork)).toEqual({ kind: 'rebuild' });
      expect(await queue.beginRestore(1)).toBe('yours');
    });

    it('that older contents left behind is made anew by a restore', async () => {
      const subject = await make();
      const { queue, prefix } = subject;
      const limited = { ...settings, limits: [limit, { use: 'x' }] };
      const state = {
        limits: [{ name: 'x', version: 1, limit }],
        queues: queues.map((one) => ({ ...one, settings: limited })),
      };
      for (const bucket of [name, sharedBucket('x')]) {
        const key = `${prefix}${layout}b:${bucket}`;
        await connection.client.hset(key, 'unit', 'requests', 'token', 1, 'version', 1);
      }
      // Contents that seem to be whole.
      await connection.client.hset(`${prefix}${layout}meta`, 'counter', 1);
      await restore(subject, state);
      await queue.offer([offerMaker()()]);
      expect(await queue.take(anyWork)).toMatchObject({ kind: 'taken' });
    });
  });

  it('R-CH4: a clock that is set back neither stops the refill nor mints tokens', async () => {
    const subject = await make();
    const { queue, clock } = subject;
    const limit = { unit: 'requests', rate: 10, perSeconds: 1, burst: 1 };
    const settings = { ...defaultQueueSettings, limits: [limit] };
    const queues = [{ name: 'q', version: 1, settings, pausedForMs: null, probes: null }];
    const offer = offerMaker();
    await restore(subject, { queues });
    await queue.offer([offer(), offer()]);
    expect(await queue.take(anyWork)).toMatchObject({ kind: 'taken', waitMs: 100 });
    clock.advance(-3_600_000);
    expect(await queue.take(anyWork)).toEqual({ kind: 'wait', waitMs: 100 });
    clock.advance(100);
    expect(await queue.take(anyWork)).toMatchObject({ kind: 'taken' });
  });

  it('goes by the clock of Redis, in whole milliseconds', async () => {
    const queue = new RedisReadyQueue({
      connection,
      bus: new LocalBus(),
      prefix: newPrefix(),
      log: silentLog,
    });
    await queue.beginRestore(1);
    await queue.restore(blank);
    await queue.offer([offerMaker()({ ageMs: 1_000.4 })]);
    const { oldestAgeMs } = await queue.live('q');
    expect(oldestAgeMs).toBeGreaterThanOrEqual(1_000);
    expect(oldestAgeMs).toBeLessThan(61_000);
    expect(oldestAgeMs).toBe(Math.floor(oldestAgeMs ?? 0));
    await queue.close();
  });
});
