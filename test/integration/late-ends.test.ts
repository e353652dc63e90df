import { expect, inject, it } from 'vitest';

import { describeOnPostgres, freshQueue, TestWorker } from './support.js';
import { openOnHeldLine, stall, untilStalled } from './stalls.js';

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
});
