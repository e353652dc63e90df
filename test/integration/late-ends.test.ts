import { expect, inject, it } from 'vitest';

import { describeOnPostgres, freshQueue, TestWorker } from './support.js';
import { openOnHeldLine, stall, stallDeletes, untilStalled } from './stalls.js';

describeOnPostgres('an end whose answer comes late', (server) => {
  it.each([
    ['in memory', () => undefined],
    ['in Redis', () => inject('redisUrl')],
  ])(
    'R-CH6: frees no slot of a later attempt (%s)',
    async (_, redisUrl) => {
      const { engine, line } = await openOnHeldLine(server(), redisUrl());
      const queue = freshQueue();
      await engine.putQueue(queue, { maxConcurrency: 1 });
      const { taskId: first } = await engine.submit({ taskType: 'noop', queue });
      const worker = await TestWorker.register(engine, { queues: [queue] });
      const attempt = await worker.takeOne();
      expect(attempt.taskId).toBe(first);
      await stall(server(), attempt.taskId, 'end');
      const ending = engine.release(worker.workerId, [attempt]);
      await untilStalled(server());
      expect(line.hold(attempt.lease)).toBe(true);
      // It was ended, and is given to somebody else before whoever ended it hears so.
      const again = await worker.takeOne();
      expect(again).toMatchObject({ taskId: first, attempt: 2 });
      await engine.submit({ taskType: 'noop', queue });
      line.letGo();
      await ending;
      expect(await worker.look(1, { waitMs: 500 })).toEqual([]);
      await worker.complete(again);
      await worker.complete(await worker.takeOne());
    },
    60_000,
  );

  it.each([
    ['in memory', () => undefined],
    ['in Redis', () => inject('redisUrl')],
  ])(
    'R-CH6, R-WO2: a cancel frees the slot of an attempt that began while it was on its way (%s)',
    async (_, redisUrl) => {
      const url = redisUrl();
      const engine = await server().open({
        settings: { sweepIntervalMs: 3_600_000 },
        ...(url === undefined ? {} : { redisUrl: url }),
      });
      for (const workflowId of [undefined, freshQueue()]) {
        const queue = freshQueue();
        await engine.putQueue(queue, { maxConcurrency: 1 });
        const draft = { taskType: 'noop', queue, ...(workflowId && { workflowId }) };
        const { taskId } = await engine.submit(draft);
        const worker = await TestWorker.register(engine, { queues: [queue] });
        const goOn = await stallDeletes(server());
        const cancelling = engine.cancelTask(taskId);
        await untilStalled(server());
        const attempt = await worker.takeOne();
        expect(attempt.taskId).toBe(taskId);
        await goOn();
        expect(await cancelling).toMatchObject({ wasExecuting: true });
        expect(await worker.complete(attempt)).toMatchObject({ accepted: false });
        // Nobody sweeps: a slot that is still in use would be for good.
        const { taskId: other } = await engine.submit({ taskType: 'noop', queue });
        const next = await worker.takeOne();
        expect(next.taskId).toBe(other);
        await worker.complete(next);
        await engine.replayTask(taskId);
        const again = await worker.takeOne();
        expect(again).toMatchObject({ taskId, attempt: 2 });
        await worker.complete(again);
      }
    },
    60_000,
  );
});
