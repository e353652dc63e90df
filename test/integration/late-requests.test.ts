import { expect, inject, it, onTestFinished } from 'vitest';

import { openSlowLine } from '../support/slow-line.js';
import { describeOnPostgres, freshQueue, TestWorker } from './support.js';

describeOnPostgres('an end that reaches Redis twice, the second time late', (server) => {
  it('R-CH6: frees no slot of a later attempt', async () => {
    const line = await openSlowLine(inject('redisUrl'));
    onTestFinished(() => line.close());
    const here = await server().open({ redisUrl: inject('redisUrl') });
    const there = await server().open({ redisUrl: line.url });
    const queue = freshQueue();
    await here.putQueue(queue, { maxConcurrency: 1 });
    const worker = await TestWorker.register(here, { queues: [queue] });
    // Redis learns the script: a text that it does not know yet is sent in a second step.
    await here.submit({ taskType: 'noop', queue });
    await worker.complete(await worker.takeOne());
    const { taskId } = await here.submit({ taskType: 'noop', queue });
    const attempt = await worker.takeOne();
    line.slowDown();
    await there.release(worker.workerId, [attempt]);
    // Told again over a new connection, it gave its slot back.
    const again = await worker.takeOne();
    expect(again).toMatchObject({ taskId, attempt: 2 });
    await here.submit({ taskType: 'noop', queue });
    await line.deliver();
    expect(await worker.look(1, { waitMs: 500 })).toEqual([]);
    await worker.complete(again);
    await worker.complete(await worker.takeOne());
  });
});
