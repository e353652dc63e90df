import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestRedis, type TestRedis } from '../../../test/support/redis.js';
import { defaultQueueSettings, type QueueSettings } from '../../domain/queue-settings.js';
import { LocalBus } from '../../runtime/bus.js';
import { silentLog } from '../../runtime/log.js';
import type { ConfiguredQueue, Offer } from '../ready-queue.js';
import { anyWork, blank, offerMaker } from '../workbench.contract.js';
import { openRedis, type RedisConnection } from './connection.js';
import { RedisReadyQueue } from './redis-ready-queue.js';
import { layout } from './script-runner.js';

/** Of a lap over a few queues, every half second. */
const maxRounds = 4;
const perHour = (rate: number) => ({ unit: 'requests', rate, perSeconds: 3600, burst: rate });
const mostOf: Readonly<Record<string, number>> = { few: 3, slow: 4, sharing: 2, paused: 0 };

describe('Redis that loses a single key', () => {
  let redis: TestRedis;
  let connection: RedisConnection;
  let queue: RedisReadyQueue;
  let generation = 0;
  let seq = 0;
  const taken = new Map<string, number>();

  beforeAll(async () => {
    redis = await createTestRedis();
    connection = await openRedis(redis.url, silentLog);
    const { prefix } = redis;
    queue = new RedisReadyQueue({ connection, bus: new LocalBus(), prefix, log: silentLog });
  });

  afterAll(async () => {
    await queue.close();
    await connection.close();
    await redis.close();
  });

  const make = offerMaker();
  const offers = (count: number, name: string, more: Partial<Offer> = {}): Offer[] =>
    Array.from({ length: count }, () => {
      seq += 1;
      return { ...make({ queue: name, seq }), eligibleAtMs: seq, ...more };
    });

  function settings(name: string, change: Partial<QueueSettings>): ConfiguredQueue {
    const full = { ...defaultQueueSettings, ...change };
    return { name, version: 1, settings: full, pausedForMs: null, probes: null };
  }

  const keys = async () => (await redis.client.keys(`${redis.prefix}${layout}*`)).sort();

  /** Short, tailed and long windows, a queue of many types, a line that was left, closed queues, and tasks that run. */
  async function fill(): Promise<void> {
    generation += 1;
    taken.clear();
    await redis.client.hdel(`${redis.prefix}${layout}meta`, 'generation');
    expect(await queue.beginRestore(generation)).toBe('yours');
    const state = {
      ...blank,
      generation,
      limits: [{ name: 'account', version: 1, limit: perHour(2) }],
      queues: [
        settings('few', { maxConcurrency: 3 }),
        settings('slow', { limits: [perHour(4)] }),
        settings('sharing', { limits: [{ use: 'account' }] }),
        settings('paused', { paused: true }),
        settings('wide', { paused: true }),
        settings('small', { maxReady: 2 }),
      ],
    };
    expect(await queue.restore(state)).toBe(true);
    for (const name of ['few', 'slow', 'sharing', 'paused', 'small', 'plain']) {
      await queue.offer(offers(12, name));
      await queue.offer(offers(40, name, { priority: 'low' }));
    }
    await queue.offer(offers(100, 'long'));
    const types = Array.from({ length: 18 }, (_, index) => `t${index}`);
    for (const taskType of types) {
      await queue.offer(offers(3, 'wide', { lane: { queue: 'wide', taskType, capabilities: [] } }));
    }
    await work();
  }

  /** Takes, ends some of what it took, and offers more. */
  async function work(): Promise<void> {
    for (let round = 0; round < 2; round += 1) {
      const answer = await queue.take({ ...anyWork, count: 10 });
      if (answer.kind !== 'taken') return;
      for (const { lane } of answer.entries) {
        taken.set(lane.queue, (taken.get(lane.queue) ?? 0) + 1);
      }
      await queue.confirm(answer.entries);
      const ended = answer.entries.filter(({ lane }) => lane.queue === 'plain');
      await queue.finish(
        ended.map(({ taskId, grant }) => {
          return { taskId, grant, queue: 'plain', reserved: {}, usage: null };
        }),
      );
    }
  }

  it('R-HA5: no key expires, so that a policy which evicts keys that do spares ours', async () => {
    await fill();
    const expiring = [];
    for (const name of await keys()) {
      if ((await redis.client.pttl(name)) !== -1) expiring.push(name);
    }
    expect(expiring).toEqual([]);
  });

  it('R-HA5: notices every one of them, exceeds no limit, and starts anew', async () => {
    await fill();
    const names = await keys();
    const kinds = new Set(
      names.map((name) => name.slice(redis.prefix.length + layout.length).replace(/:.*/s, '')),
    );
    expect([...kinds].sort()).toEqual([
      'alarms',
      'b',
      'changed',
      'entries',
      'heads',
      'idle',
      'index',
      'lanes',
      'left',
      'members',
      'meta',
      'out',
      'parked',
      'parked-of',
      'settings',
      'sources',
      'sources-of',
      'states',
      'tails',
      'w',
      'windows',
    ]);
    // Whole contents are left alone.
    for (let round = 0; round < maxRounds; round += 1) {
      expect(await queue.beginRestore(generation)).toBe('open');
    }
    const unnoticed: string[] = [];
    const exceeded: string[] = [];
    for (const name of names) {
      await fill();
      if ((await redis.client.del(name)) === 0) continue;
      let isNoticed = false;
      for (let round = 0; round < maxRounds && !isNoticed; round += 1) {
        await work();
        const lane = { queue: 'plain', taskType: 'other', capabilities: [] };
        await queue.offer([...offers(1, 'few'), ...offers(1, 'plain', { lane })]);
        isNoticed = (await queue.beginRestore(generation)) !== 'open';
      }
      if (!isNoticed) unnoticed.push(name);
      for (const [where, most] of Object.entries(mostOf)) {
        if ((taken.get(where) ?? 0) > most) exceeded.push(`${where} without ${name}`);
      }
    }
    expect(unnoticed).toEqual([]);
    expect(exceeded).toEqual([]);
    await fill();
    expect(await keys()).toEqual(names);
  });

  it.each([
    { what: 'taken or run', isLost: (record: string) => !record.startsWith('W') },
    { what: 'wait', isLost: (record: string) => record.startsWith('W') },
  ])('R-HA5: notices that records of tasks which $what are gone', async ({ isLost }) => {
    await fill();
    const entriesKey = `${redis.prefix}${layout}entries`;
    const records = Object.entries(await redis.client.hgetall(entriesKey));
    const lost = records.flatMap(([id, text]) => (id !== '' && isLost(text) ? [id] : []));
    expect(await redis.client.hdel(entriesKey, ...lost)).toBeGreaterThan(0);
    const slow = settings('slow', { limits: [perHour(5)] });
    await queue.configure({ limits: [], queues: [{ ...slow, version: 2 }] });
    await queue.survey(() => undefined);
    await work();
    await queue.listOut(null, 1_000);
    expect(await queue.beginRestore(generation)).toBe('yours');
    // Closed, it has nothing to tell.
    expect(await queue.listOut(null, 1_000)).toEqual({ entries: [], next: null });
  });
});
