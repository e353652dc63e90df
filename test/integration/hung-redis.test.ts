import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';

import type { Engine } from '../../src/engine/open-engine.js';
import { askRedis, startRedis, type RunningRedis } from '../support/services/redis-server.js';
import { until } from '../support/until.js';
import { describeOnPostgres, drafts, freshQueue, submitAll, TestWorker } from './support.js';

const spare = 60;
/** In less than this, without the fence, 59 of 60 tasks started after a pause. */
const watchedMs = 1_400;

describeOnPostgres('settings that Redis could not be told of', (server) => {
  let redis: RunningRedis;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  const openTwo = async () => {
    const open = () => server().open({ redisUrl: redis.url });
    return Promise.all([open(), open()]);
  };

  /** Not before both have noticed: what is sent sooner stays in the sockets, and Redis reads it in the end. */
  async function whileHung(engines: readonly Engine[], work: () => Promise<void>): Promise<void> {
    await redis.kill('SIGSTOP');
    onTestFinished(() => redis.kill('SIGCONT'));
    await Promise.all(engines.map((engine) => engine.putQueue(freshQueue(), {})));
    await work();
    await redis.kill('SIGCONT');
  }

  async function whileFull(work: () => Promise<void>): Promise<void> {
    await askRedis(redis.url, 'config', 'set', 'maxmemory', '1');
    onTestFinished(async () => {
      await askRedis(redis.url, 'config', 'set', 'maxmemory', '0');
    });
    await work();
    await askRedis(redis.url, 'config', 'set', 'maxmemory', '0');
  }

  /** With a worker that has had one task of it. */
  async function busyQueue(engine: Engine) {
    const queue = freshQueue();
    await submitAll(engine, drafts(spare, { taskType: 'noop', queue }));
    const worker = await TestWorker.register(engine, { queues: [queue] });
    await worker.completeAll(await worker.take(1));
    return { queue, worker };
  }

  it('R-HA5: what is put while Redis hangs is what counts at every server when it is back', async () => {
    const [first, second] = await openTwo();
    const limit = 'hung-account';
    expect(await first.putLimit(limit, perHour(10_000))).toMatchObject({ inForce: true });
    const paused = await busyQueue(second);
    const narrowed = await busyQueue(second);
    const sharing = await busyQueue(second);
    await first.putQueue(narrowed.queue, { maxConcurrency: 500 });
    await first.putQueue(sharing.queue, { limits: [{ use: limit }] });
    await whileHung([first, second], async () => {
      expect(await first.pauseQueue(paused.queue)).toMatchObject({ inForce: false });
      const put = await first.putQueue(narrowed.queue, { maxConcurrency: 5 });
      expect(put).toMatchObject({ settings: { maxConcurrency: 5 }, inForce: false });
      expect(await first.putLimit(limit, perHour(3))).toMatchObject({ inForce: false });
    });
    const [ofPaused, ofNarrowed, ofSharing] = await Promise.all(
      [paused, narrowed, sharing].map(({ worker }) => takenWithin(worker, watchedMs)),
    );
    expect([ofPaused, ofNarrowed]).toEqual([0, 5]);
    expect(ofSharing).toBeLessThanOrEqual(3);
    for (const { queue } of [paused, narrowed, sharing]) {
      expect(await first.getQueue(queue)).toMatchObject({ inForce: true });
    }
    expect(await second.getLimit(limit)).toMatchObject({ inForce: true });
    expect(await first.resumeQueue(paused.queue)).toMatchObject({ inForce: true });
    expect(await paused.worker.take(spare - 1)).toHaveLength(spare - 1);
  });

  it('R-HA5: a new queue runs by its settings though Redis was full when they were put', async () => {
    const [first, second] = await openTwo();
    const queue = freshQueue();
    const worker = await TestWorker.register(second, { queues: [queue] });
    await whileFull(async () => {
      expect(await first.putQueue(queue, { maxConcurrency: 2 })).toMatchObject({ inForce: false });
      await submitAll(first, drafts(spare, { taskType: 'noop', queue }));
    });
    expect(await takenWithin(worker, watchedMs)).toBe(2);
    expect(await first.getQueue(queue)).toMatchObject({ inForce: true });
  });

  it('R-HA5: settings whose server died before it told Redis count at the next claim', async () => {
    const [, second] = await openTwo();
    const { queue, worker } = await busyQueue(second);
    // All that such a server leaves behind.
    await server().sql(
      'update sluice.queues set paused = true, version = version + 1 where name = $1',
      [queue],
    );
    expect(await takenWithin(worker, 500)).toBe(0);
    await until('the pause to be in force', async () => (await second.getQueue(queue)).inForce);
    await second.resumeQueue(queue);
    expect(await worker.take(spare - 1)).toHaveLength(spare - 1);
  });
});

async function takenWithin(worker: TestWorker, durationMs: number): Promise<number> {
  const endsMs = performance.now() + durationMs;
  let taken = 0;
  while (performance.now() < endsMs) taken += (await worker.look(10, { waitMs: 100 })).length;
  return taken;
}

function perHour(rate: number) {
  return { unit: 'requests', rate, perSeconds: 3600, burst: null };
}
