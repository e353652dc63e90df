import { expect, it, beforeAll, afterAll, onTestFinished } from 'vitest';

import { openLine } from '../support/line.js';
import { startRedis, type RunningRedis } from '../support/services/redis-server.js';
import { until } from '../support/until.js';
import { describeOnPostgres, drafts, freshQueue, submitAll, TestWorker } from './support.js';
import { stall, untilStalled } from './stalls.js';

describeOnPostgres('a server that is cut off from Redis', (server) => {
  let redis: RunningRedis;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  it('R-CH4: what it handed out and could not confirm is not granted twice', async () => {
    const line = await openLine(redis.port);
    onTestFinished(() => line.close());
    const cutOff = await server().open({ redisUrl: line.url });
    const other = await server().open({ redisUrl: redis.url });
    const queue = freshQueue();
    await cutOff.putQueue(queue, {
      limits: [{ unit: 'requests', rate: 1, perSeconds: 600, burst: null }],
    });
    const [first] = await submitAll(cutOff, drafts(2, { taskType: 'noop', queue }));
    const worker = await TestWorker.register(cutOff, { queues: [queue] });
    await stall(server(), first ?? '', 'claim');
    const polling = worker.takeOne();
    await untilStalled(server());
    line.cut();
    const task = await polling;
    expect(task.taskId).toBe(first);
    await worker.complete(task);
    const elsewhere = new TestWorker(other, worker.workerId);
    expect(await elsewhere.look(1, { waitMs: 15_000 })).toEqual([]);
  }, 60_000);

  it('R-CH5: what was used besides is owed, though its slot was freed before it could be told', async () => {
    const line = await openLine(redis.port);
    onTestFinished(() => line.close());
    const cutOff = await server().open({ redisUrl: line.url });
    const other = await server().open({ redisUrl: redis.url });
    const queue = freshQueue();
    await cutOff.putQueue(queue, {
      limits: [{ unit: 'tokens', rate: 100, perSeconds: 600, burst: 100 }],
    });
    await submitAll(cutOff, drafts(1, { taskType: 'noop', queue, cost: { tokens: 10 } }));
    const worker = await TestWorker.register(cutOff, { queues: [queue] });
    const task = await worker.takeOne();
    await until('it to be confirmed', async () => (await other.getQueue(queue)).live.running === 1);
    line.cut();
    await until('the loss to be noticed', () => cutOff.readyQueueTrouble() !== null);
    const { taskId, lease } = task;
    await worker.report({ taskId, lease, status: 'completed', usage: { tokens: 1_000 } });
    await until(
      'its slot to be free',
      async () => (await other.getQueue(queue)).live.running === 0,
    );
    line.mend();
    await until('the return', () => cutOff.readyQueueTrouble() === null);
    const tokens = async () => (await other.getQueue(queue)).live.tokens.tokens ?? 0;
    await until('the debt to be booked', async () => (await tokens()) < 0, { deadlineMs: 5_000 });
    expect(await tokens()).toBeGreaterThan(-950);
  }, 60_000);
});
