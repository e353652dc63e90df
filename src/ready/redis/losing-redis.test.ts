import { pino } from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import { startRedisCluster } from '../../../test/support/services/redis-cluster.js';
import {
  askRedis,
  startRedis,
  type RunningRedis,
} from '../../../test/support/services/redis-server.js';
import { until } from '../../../test/support/until.js';
import { defaultQueueSettings } from '../../domain/queue-settings.js';
import { LocalBus } from '../../runtime/bus.js';
import type { Clock } from '../../runtime/clock.js';
import { silentLog, type Logger } from '../../runtime/log.js';
import type { ReadyState } from '../ready-queue.js';
import { anyWork, blank, offerMaker, Workbench } from '../workbench.contract.js';
import { openRedis, type RedisConnection } from './connection.js';
import { RedisReadyQueue } from './redis-ready-queue.js';
import { layout } from './script-runner.js';

const prefix = 'sluice:{test}:';
const closing: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function ownRedis(): Promise<RunningRedis> {
  const server = await startRedis();
  closing.push(() => server.stop());
  return server;
}

interface Opened {
  readonly queue: RedisReadyQueue;
  readonly connection: RedisConnection;
}

async function open(url: string, log: Logger = silentLog, clock?: Clock): Promise<Opened> {
  const connection = await openRedis(url, log);
  const options = { connection, bus: new LocalBus(), prefix, log };
  const queue = new RedisReadyQueue(clock === undefined ? options : { ...options, clock });
  closing.push(async () => {
    await queue.close();
    await connection.close();
  });
  return { queue, connection };
}

async function restore(queue: RedisReadyQueue, state: Partial<ReadyState> = {}): Promise<void> {
  const full = { ...blank, ...state };
  expect(await queue.beginRestore(full.generation)).toBe('yours');
  expect(await queue.restore(full)).toBe(true);
}

async function untilGone({ connection }: Opened): Promise<void> {
  await until('the loss to be noticed', () => connection.trouble() !== null);
}

async function untilBack({ connection }: Opened): Promise<void> {
  await until('Redis to be back', () => connection.trouble() === null);
}

/** Keeps what would be written at `warn` and above. */
function keptLog() {
  const lines: { msg: string; reason?: string }[] = [];
  const write = (line: string) => lines.push(JSON.parse(line) as { msg: string });
  return { log: pino({ level: 'warn' }, { write }), lines };
}

describe('Redis that loses its contents', () => {
  it('R-RE7: after a flush nothing is taken or offered until a restore', async () => {
    const server = await ownRedis();
    const { queue } = await open(server.url);
    const offer = offerMaker();
    const [before, after] = [offer(), offer()];
    await restore(queue);
    await queue.offer([before]);
    await askRedis(server.url, 'flushall');
    expect(await queue.take(anyWork)).toEqual({ kind: 'rebuild' });
    expect(await queue.offer([after])).toEqual({ kind: 'rebuild' });
    await restore(queue, { generation: 2 });
    await queue.offer([after]);
    expect(await queue.take(anyWork)).toMatchObject({
      kind: 'taken',
      generation: 2,
      entries: [{ taskId: after.taskId }],
    });
  });

  it('R-RE7: a restart with an old snapshot is no better than an empty one', async () => {
    const server = await ownRedis();
    const opened = await open(server.url);
    const { queue } = opened;
    const offer = offerMaker();
    await restore(queue);
    await queue.offer([offer(), offer()]);
    await askRedis(server.url, 'save');
    await queue.take(anyWork);
    await server.kill('SIGKILL');
    await untilGone(opened);
    await server.restart();
    await untilBack(opened);
    expect(await askRedis(server.url, 'exists', `${prefix}${layout}entries`)).toBe(1);
    expect(await queue.take(anyWork)).toEqual({ kind: 'rebuild' });
    expect(await queue.offer([offer()])).toEqual({ kind: 'rebuild' });
    await restore(queue, { generation: 2 });
    expect(await queue.take(anyWork)).toEqual({ kind: 'wait', waitMs: null });
  });

  it('runs scripts that Redis has forgotten', async () => {
    const server = await ownRedis();
    const { queue } = await open(server.url);
    const offer = offerMaker();
    await restore(queue);
    await queue.offer([offer()]);
    await askRedis(server.url, 'script', 'flush');
    await queue.offer([offer()]);
    await askRedis(server.url, 'script', 'flush');
    expect(await queue.take({ ...anyWork, count: 9 })).toMatchObject({ kind: 'taken' });
  });

  it('a fault of ours is thrown, not taken for an outage', async () => {
    const server = await ownRedis();
    const { queue } = await open(server.url);
    await restore(queue);
    await askRedis(server.url, 'set', `${prefix}${layout}entries`, 'not a hash');
    await expect(queue.offer([offerMaker()()])).rejects.toThrow('the script offer failed');
  });
});

describe('Redis that is away', () => {
  it('R-RE7: nothing throws, nothing is taken, and it is told once', async () => {
    const server = await ownRedis();
    const { log, lines } = keptLog();
    const opened = await open(server.url, log);
    const { queue } = opened;
    const { taskId, lane } = offerMaker()();
    const told = { settings: defaultQueueSettings, pausedForMs: null, probes: null };
    const settled = { name: 'q', version: 1, ...told };
    await restore(queue);
    await server.kill('SIGKILL');
    await untilGone(opened);
    for (let round = 0; round < 3; round += 1) {
      expect(await queue.offer([offerMaker()()])).toEqual({ kind: 'rebuild' });
      expect(await queue.take(anyWork)).toEqual({ kind: 'rebuild' });
      expect(await queue.look([{ lane, priority: 'high' }])).toMatchObject([{ room: 0 }]);
      expect(await queue.leave([offerMaker()()])).toBe(false);
      expect(await queue.missing([taskId])).toEqual([]);
      await queue.confirm([{ taskId, grant: '1.1' }]);
      await queue.refund([{ taskId, grant: '1.1' }]);
      await queue.remove([taskId]);
      expect(await queue.configure({ limits: [], queues: [settled] })).toBeNull();
      expect(await queue.live('q')).toMatchObject({ running: 0, oldestAgeMs: null, buckets: [] });
      expect(await queue.position(taskId, 10)).toBeNull();
      expect(await queue.listOut(null, 10)).toEqual({ entries: [], next: null });
      expect(await queue.levels()).toEqual([]);
      expect(await queue.beginRestore(1)).toBe('busy');
      expect(await queue.restore(blank)).toBe(false);
    }
    expect(queue.trouble()).toContain('Redis');
    expect(lines).toHaveLength(1);
    await server.restart();
    await untilBack(opened);
    expect(queue.trouble()).toBeNull();
    await restore(queue, { generation: 2 });
  });

  it('R-CH6: what ended meanwhile gives its slot back after the return', async () => {
    const server = await ownRedis();
    const { queue } = await open(server.url);
    const bench = new Workbench({ queue, nowMs: () => 0, advance: () => undefined, driftMs: 0 });
    await restore(queue, { queues: [bench.settings({ maxConcurrency: 1 })] });
    await bench.offer(bench.task(), bench.task());
    const ran = await bench.run();
    await askRedis(server.url, 'replicaof', '127.0.0.1', '1');
    await bench.finish(...ran);
    expect(queue.trouble()).toContain('READONLY');
    await askRedis(server.url, 'replicaof', 'no', 'one');
    await until('the slot to be free', async () => (await bench.takeIds()).length > 0);
  });

  it('R-CH6: what ended meanwhile frees no slot of a later taking', async () => {
    const server = await ownRedis();
    const { queue } = await open(server.url);
    const bench = new Workbench({ queue, nowMs: () => 0, advance: () => undefined, driftMs: 0 });
    const queues = [bench.settings({ maxConcurrency: 1 })];
    const again = bench.task();
    await restore(queue, { queues });
    await bench.offer(again);
    await bench.run();
    await askRedis(server.url, 'flushall');
    await bench.finish(again.taskId);
    const other = (await open(server.url)).queue;
    await restore(other, { generation: 2, queues });
    await other.offer([again, bench.task()]);
    expect(await other.take(anyWork)).toMatchObject({ entries: [{ taskId: again.taskId }] });
    // Whatever was kept is told with the first answer that is not a refusal.
    expect(await bench.take()).toEqual([]);
    expect(await bench.take()).toEqual([]);
  });

  it('R-RE7: a replica, as after a failover, gives nothing and is told once', async () => {
    const server = await ownRedis();
    const { log, lines } = keptLog();
    const { queue } = await open(server.url, log);
    await restore(queue);
    await queue.offer([offerMaker()()]);
    await askRedis(server.url, 'replicaof', '127.0.0.1', '1');
    for (let round = 0; round < 3; round += 1) {
      expect(await queue.take(anyWork)).toEqual({ kind: 'rebuild' });
    }
    expect(queue.trouble()).not.toBeNull();
    expect(lines).toHaveLength(1);
    await askRedis(server.url, 'replicaof', 'no', 'one');
    await until('a take', async () => (await queue.take(anyWork)).kind === 'taken');
    // A look that met the replica is followed by another one.
    await until('Redis to be well again', () => queue.trouble() === null);
  });
});

describe('a Redis Cluster', () => {
  it('R-CH14: every script touches the keys of one slot alone', async () => {
    const cluster = await startRedisCluster();
    closing.push(() => cluster.stop());
    const { queue } = await open(cluster.url);
    const bench = new Workbench({ queue, nowMs: () => 0, advance: () => undefined, driftMs: 0 });
    const limit = { unit: 'requests', rate: 100, perSeconds: 1, burst: 9 };
    const shared = { name: 'shared', version: 1, limit };
    const limits = [{ use: 'shared' }, limit];
    await restore(queue, { limits: [shared], queues: [bench.settings({ limits })] });
    const [first, second, third] = [bench.task(), bench.task(), bench.task({ priority: 'low' })];
    expect(await bench.offer(first, second, third)).toEqual(['accepted', 'accepted', 'accepted']);
    await bench.share('shared', { ...limit, rate: 200 });
    await bench.configure({ limits, maxConcurrency: 5, probes: 5 });
    expect(await bench.takeIds()).toEqual([first.taskId]);
    expect(await bench.takeIds({ queues: ['q'] })).toEqual([second.taskId]);
    await bench.confirm(first.taskId);
    await bench.refund(second.taskId);
    expect(await queue.position(third.taskId, 9)).toBe(0);
    expect(await queue.live('q')).toMatchObject({ running: 1, depth: { low: 1 } });
    const window = { lane: third.lane, priority: 'low' } as const;
    expect(await queue.look([window])).toEqual([{ room: 9_999, left: null }]);
    expect(await queue.leave([bench.task({ priority: 'low' })])).toBe(true);
    expect(await queue.listBehind()).toEqual([window]);
    const [begun] = await queue.beginFeed([window]);
    const stretch = { window, round: begun?.left?.round ?? -1, offers: [], next: null };
    expect(await queue.feed([stretch])).toEqual({ kind: 'offered', outcomes: [] });
    expect(await queue.listBehind()).toEqual([]);
    expect((await queue.listOut(null, 9)).entries).toHaveLength(1);
    expect(await queue.levels()).toHaveLength(2);
    await bench.settle(first, { requests: 1 });
    await queue.remove([third.taskId]);
    expect(await queue.missing([first.taskId, third.taskId])).toHaveLength(2);
    expect(queue.trouble()).toBeNull();
  });
});
