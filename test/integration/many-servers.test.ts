import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest';

import { MixedServersError, type Engine } from '../../src/engine/open-engine.js';
import type { QueueDraft } from '../../src/protocol/queues-api.js';
import { openLine } from '../support/line.js';
import { askRedis, startRedis, type RunningRedis } from '../support/services/redis-server.js';
import { staysWithin } from '../support/stays-within.js';
import { until } from '../support/until.js';
import {
  describeOnPostgres,
  drafts,
  submitAll,
  TestWorker,
  untilStatus,
  untilWaiting,
} from './support.js';

const perMinute = (rate: number): QueueDraft => ({
  limits: [{ unit: 'requests', rate, perSeconds: 60, burst: null }],
});

describeOnPostgres('many servers', (server) => {
  const open = () => server().open({ redisUrl: inject('redisUrl') });

  it('R-CH12: all serve at once, and a worker may talk to any of them', async () => {
    const [first, second] = await Promise.all([open(), open()]);
    expect(first.notServing()).toBeNull();
    expect(second.notServing()).toBeNull();
    await submitAll(first, drafts(100, { taskType: 'noop', queue: 'any' }));
    const worker = await TestWorker.register(first, { queues: ['any'] });
    const elsewhere = new TestWorker(second, worker.workerId);
    const [here, there] = await Promise.all([worker.take(50), elsewhere.take(50)]);
    expect(new Set([...here, ...there].map(({ taskId }) => taskId)).size).toBe(100);
    // What one handed out is reported to the other.
    for (const answer of await elsewhere.completeAll(here)) expect(answer.accepted).toBe(true);
    for (const answer of await worker.completeAll(there)) expect(answer.accepted).toBe(true);
  });

  it('R-OB7: what all servers counted is right to the task, also after they ended', async () => {
    const servers = await Promise.all([open(), open()]);
    await submitAll(servers[0], drafts(60, { taskType: 'noop', queue: 'counted' }));
    for (const engine of servers) {
      const worker = await TestWorker.register(engine, { queues: ['counted'] });
      const [failing, ...others] = await worker.take(20);
      await worker.completeAll(others);
      if (failing !== undefined) await worker.fail(failing, { code: 'X', retriable: false });
    }
    await Promise.all(servers.map((engine) => engine.close()));

    const engine = await open();
    const metrics = ['submitted', 'started', 'completed', 'failed', 'dead_letter', 'run_p50'];
    const { values } = await engine.getSeries({ queue: 'counted', metrics });
    const sum = (metric: string) =>
      values[metric]?.reduce((total, n) => (total ?? 0) + (n ?? 0), 0);
    const { items } = await engine.listTasks({ queue: 'counted' }, { limit: 100 });
    const rows = (status: string) => items.filter((task) => task.status === status).length;
    expect([rows('completed'), rows('dead_letter'), rows('queued')]).toEqual([38, 2, 20]);
    expect(metrics.slice(0, 5).map(sum)).toEqual([60, 40, 38, 2, 2]);
    expect((await engine.getQueue('counted')).live.lastMinute).toMatchObject({ completed: 38 });
  });

  it('R-OB7: a follower hears of the tasks of every server, and another server sends only what is followed', async () => {
    const [first, second] = await Promise.all([open(), open()]);
    const heard: string[] = [];
    const following = first.follow({
      hear: ({ taskId, queue, to, at }) =>
        heard.push(`${taskId} ${queue} ${to} ${at instanceof Date}`),
      missed: () => undefined,
      followed: () => [{ queue: 'followed', taskId: null }],
    });
    onTestFinished(() => {
      following.stop();
    });
    // The request to send events takes a moment to reach the other server.
    await until('the first event', async () => {
      await second.submit({ taskType: 'noop', queue: 'followed' });
      return heard.length > 0;
    });
    const followed: string[] = [];
    for (let n = 0; n < 20; n += 1) {
      await second.submit({ taskType: 'noop', queue: 'unfollowed' });
      const { taskId } = await second.submit({ taskType: 'noop', queue: 'followed' });
      followed.push(`${taskId} followed queued true`);
    }
    await until('the last event', () => heard.at(-1) === followed.at(-1));
    // Each once, and in order.
    expect(heard.slice(-followed.length)).toEqual(followed);
    expect(heard).toHaveLength(new Set(heard).size);
  });

  it('R-CH12: an offer wakes a poll that waits at another server', async () => {
    const [first, second] = await Promise.all([open(), open()]);
    const worker = await TestWorker.register(second, { queues: ['wakes'] });
    const wake = async () => {
      const { polls } = await untilWaiting(() => worker.look(1, { waitMs: 60_000 }));
      const beganMs = performance.now();
      await first.submit({ taskType: 'noop', queue: 'wakes' });
      const tasks = await polls;
      expect(tasks).toHaveLength(1);
      await worker.completeAll(tasks);
      return performance.now() - beganMs;
    };
    expect(await staysWithin(soonerThanALookMs, wake)).toBe(true);
  });

  it('R-CH12: a cancelled task is told to its worker, whichever server it polls', async () => {
    const [first, second] = await Promise.all([open(), open()]);
    const worker = await TestWorker.register(second, { queues: ['cancels'] });
    const cancel = async () => {
      await first.submit({ taskType: 'noop', queue: 'cancels' });
      const { taskId } = await worker.takeOne();
      const { polls } = await untilWaiting(() =>
        second.poll(worker.workerId, { availableCapacity: 1, waitMs: 60_000 }),
      );
      const beganMs = performance.now();
      await expect(first.cancelTask(taskId)).resolves.toMatchObject({ workerNotified: true });
      expect((await polls).cancelled).toEqual([taskId]);
      return performance.now() - beganMs;
    };
    expect(await staysWithin(soonerThanALookMs, cancel)).toBe(true);
  });

  it('R-WO8: a worker that left at one server is given nothing by a poll that waits at another', async () => {
    const [first, second] = await Promise.all([open(), open()]);
    const worker = await TestWorker.register(second, { queues: ['left'] });
    const { polls } = await untilWaiting(() => worker.look(1, { waitMs: 20_000 }).catch(() => []));
    await first.deregister(worker.workerId);
    const { taskId } = await first.submit({ taskType: 'noop', queue: 'left' });
    expect(await polls).toEqual([]);
    expect((await first.getTask(taskId)).attempt).toBe(0);
  });

  it('R-CH7: what is put at one server counts for the next take at the other', async () => {
    const [first, second] = await Promise.all([open(), open()]);
    await submitAll(first, drafts(20, { taskType: 'noop', queue: 'put' }));
    const worker = await TestWorker.register(second, { queues: ['put'] });
    await first.putQueue('put', perMinute(1));
    expect(await worker.look(20)).toHaveLength(1);
    expect(await worker.look(20)).toHaveLength(0);
    await first.putQueue('put', {});
    expect(await worker.look(20)).toHaveLength(19);
  });

  it('R-CH7: of two puts at once both servers keep the same, and it is what holds', async () => {
    const [first, second] = await Promise.all([open(), open()]);
    await submitAll(first, drafts(20, { taskType: 'noop', queue: 'both' }));
    const worker = await TestWorker.register(second, { queues: ['both'] });
    for (let round = 1; round <= 8; round += 1) {
      await Promise.all([
        first.putQueue('both', { maxConcurrency: round }),
        second.putQueue('both', { maxConcurrency: 10 + round }),
      ]);
      const stored = await first.getQueue('both');
      expect(await second.getQueue('both')).toMatchObject({
        version: stored.version,
        settings: stored.settings,
      });
      const taken = await worker.look(20);
      expect(taken).toHaveLength(stored.settings.maxConcurrency ?? 0);
      await second.release(worker.workerId, taken);
      await until('all to be back', async () => {
        const { live } = await first.getQueue('both');
        return live.running === 0 && live.depth.medium === 20;
      });
    }
  });

  it('R-CH6: max_concurrency counts what runs from every server', async () => {
    const [first, second] = await Promise.all([open(), open()]);
    await first.putQueue('few', { maxConcurrency: 7 });
    await submitAll(first, drafts(30, { taskType: 'noop', queue: 'few' }));
    const workers = await Promise.all([
      TestWorker.register(first, { queues: ['few'] }),
      TestWorker.register(second, { queues: ['few'] }),
    ]);
    const taken = (await Promise.all(workers.map((worker) => worker.look(20)))).flat();
    expect(taken).toHaveLength(7);
    await workers[0].completeAll(taken.slice(0, 3));
    expect(await workers[1].look(20)).toHaveLength(3);
  });

  it('R-CH12: what one worker leaves over, a worker that waits at another server takes', async () => {
    const [first, second] = await Promise.all([open(), open()]);
    const resume = async () => {
      await first.pauseQueue('over');
      await submitAll(first, drafts(4, { taskType: 'noop', queue: 'over' }));
      const workers = await Promise.all(
        [first, second, second, second].map((engine) =>
          TestWorker.register(engine, { queues: ['over'], capacity: 1 }),
        ),
      );
      const { polls } = await untilWaiting(
        () => Promise.all(workers.map((worker) => worker.look(1, { waitMs: 60_000 }))),
        workers.length,
      );
      const beganMs = performance.now();
      await first.resumeQueue('over');
      expect((await polls).flat()).toHaveLength(4);
      return performance.now() - beganMs;
    };
    expect(await staysWithin(soonerThanALookMs, resume)).toBe(true);
  });

  it('R-CH12: a server without Redis is refused beside servers with it, and says why', async () => {
    const settings = { servingLeaseMs: 5_000, servingRenewMs: 300 };
    await server().open({ settings, redisUrl: inject('redisUrl') });
    const mixture = server().open({ settings });
    await expect(mixture).rejects.toThrow(MixedServersError);
    await expect(mixture).rejects.toThrow(/REDIS_URL/);
  });
});

describe('R-CH12: and the other way round', () => {
  describeOnPostgres('a mixture', (server) => {
    it('a server with Redis is refused beside one without, and says why', async () => {
      const settings = { servingLeaseMs: 5_000, servingRenewMs: 300 };
      await server().open({ settings });
      const mixture = server().open({ settings, redisUrl: inject('redisUrl') });
      await expect(mixture).rejects.toThrow(/REDIS_URL/);
    });
  });
});

describeOnPostgres('R-RE7: Redis is only a hint', (server) => {
  let redis: RunningRedis;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  const open = () => server().open({ redisUrl: redis.url });

  async function completeAll(engines: readonly Engine[], queue: string, count: number) {
    const workers = await Promise.all(
      engines.map((engine) => TestWorker.register(engine, { queues: [queue] })),
    );
    let completed = 0;
    await until(`${String(count)} tasks to complete`, async () => {
      for (const worker of workers) {
        const tasks = await worker.look(50);
        const answers = await worker.completeAll(tasks);
        completed += answers.filter(({ accepted }) => accepted).length;
      }
      return completed >= count;
    });
    return completed;
  }

  it('flushed in the middle, everything goes on by itself and nothing runs twice', async () => {
    const engines = await Promise.all([open(), open()]);
    const receipts = await submitAll(
      engines[0],
      drafts(1_000, { taskType: 'noop', queue: 'flushed' }),
    );
    const flushing = setInterval(() => void askRedis(redis.url, 'flushall'), 300);
    onTestFinished(() => clearInterval(flushing));
    expect(await completeAll(engines, 'flushed', 1_000)).toBe(1_000);
    clearInterval(flushing);
    const attempts = await server().sql<{ attempt: number }>(
      `select distinct attempt from sluice.task_history where queue = 'flushed'`,
    );
    expect(receipts).toHaveLength(1_000);
    expect(attempts).toEqual([{ attempt: 1 }]);
  });

  it('flushed while tasks run, max_concurrency still counts them', async () => {
    const engines = await Promise.all([open(), open()]);
    await engines[0].putQueue('slots', { maxConcurrency: 3 });
    await submitAll(engines[0], drafts(10, { taskType: 'noop', queue: 'slots' }));
    const worker = await TestWorker.register(engines[0], { queues: ['slots'] });
    const running = await worker.take(3);
    await askRedis(redis.url, 'flushall');
    await until('the ready queue to be filled anew', async () => {
      const { live } = await engines[1].getQueue('slots');
      return live.running === 3 && live.depth.medium === 7;
    });
    const other = await TestWorker.register(engines[1], { queues: ['slots'] });
    expect(await other.look(10)).toHaveLength(0);
    await worker.completeAll(running.slice(0, 1));
    expect(await other.take(1)).toHaveLength(1);
  });

  it('contents of a generation that Postgres no longer takes claims of are filled anew', async () => {
    const settings = { servingLeaseMs: 4_000, servingRenewMs: 200 };
    const before = await server().open({ redisUrl: redis.url, settings });
    await submitAll(before, drafts(3, { taskType: 'noop', queue: 'parted' }));
    await before.close();
    // It served alone for a while, from memory, once the turn of the others had lapsed.
    const alone = await server().open({ settings });
    expect(alone.notServing()).toBeNull();
    await alone.close();
    const after = await server().open({ redisUrl: redis.url, settings });
    const worker = await TestWorker.register(after, { queues: ['parted'] });
    expect(await worker.take(3)).toHaveLength(3);
  });

  it('R-CH7: a pause that could not be told at once is told as soon as it can be', async () => {
    const line = await openLine(redis.port);
    onTestFinished(() => line.close());
    const engine = await server().open({ redisUrl: line.url });
    await submitAll(engine, drafts(10, { taskType: 'noop', queue: 'untold' }));
    const worker = await TestWorker.register(engine, { queues: ['untold'] });
    expect(await worker.take(1)).toHaveLength(1);
    line.cut();
    await until('the loss to be noticed', () => engine.readyQueueTrouble() !== null);
    await engine.pauseQueue('untold');
    line.mend();
    await until('the return', () => engine.readyQueueTrouble() === null);
    await until('the pause to count', async () => {
      const taken = await worker.look(1);
      await engine.release(worker.workerId, taken);
      return taken.length === 0;
    });
    expect(await worker.look(10)).toHaveLength(0);
  });

  it('while it is away tasks are accepted, polls are empty and health is degraded', async () => {
    const engine = await open();
    const worker = await TestWorker.register(engine, { queues: ['away'] });
    await redis.kill('SIGKILL');
    await until('the loss to be noticed', () => engine.readyQueueTrouble() !== null);
    const { taskId, status } = await engine.submit({ taskType: 'noop', queue: 'away' });
    expect(status).toBe('queued');
    expect(await worker.look(1, { waitMs: 300 })).toEqual([]);
    await redis.restart();
    await until('the return', () => engine.readyQueueTrouble() === null);
    const task = await worker.takeOne();
    expect(task.taskId).toBe(taskId);
    await worker.complete(task);
    await untilStatus(engine, taskId, 'completed');
  });

  it('a poll that waits goes on waiting through the loss, and is answered after it', async () => {
    const engine = await open();
    const worker = await TestWorker.register(engine, { queues: ['through'] });
    const { polls } = await untilWaiting(() => worker.look(1, { waitMs: 120_000 }));
    await redis.kill('SIGKILL');
    await until('the loss to be noticed', () => engine.readyQueueTrouble() !== null);
    const { taskId } = await engine.submit({ taskType: 'noop', queue: 'through' });
    await redis.restart();
    expect((await polls).map((task) => task.taskId)).toEqual([taskId]);
  });

  it('a report that comes while it is away counts, and its slot is free afterwards', async () => {
    const engine = await open();
    await engine.putQueue('late', { maxConcurrency: 1 });
    await submitAll(engine, drafts(2, { taskType: 'noop', queue: 'late' }));
    const worker = await TestWorker.register(engine, { queues: ['late'] });
    const first = await worker.takeOne();
    await redis.kill('SIGKILL');
    await until('the loss to be noticed', () => engine.readyQueueTrouble() !== null);
    await expect(worker.complete(first)).resolves.toMatchObject({ accepted: true });
    await redis.restart();
    const second = await worker.takeOne();
    expect(second.taskId).not.toBe(first.taskId);
  });
});

/** A poll looks again by itself after five seconds. */
const soonerThanALookMs = 4_000;
