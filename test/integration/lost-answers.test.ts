import { expect, inject, it } from 'vitest';

import { until } from '../support/until.js';
import { describeOnPostgres, freshQueue, refusal, TestWorker, untilStatus } from './support.js';
import { openOnHeldLine, stall, untilStalled } from './stalls.js';

describeOnPostgres('a result that was written, and its answer was lost', (server) => {
  it.each([
    ['in memory', () => undefined],
    ['in Redis', () => inject('redisUrl')],
  ])(
    'R-CH5: is reported again, and what it used besides is owed (%s)',
    async (_, redisUrl) => {
      const { engine, line } = await openOnHeldLine(server(), redisUrl());
      const queue = freshQueue();
      await engine.putQueue(queue, {
        limits: [{ unit: 'tokens', rate: 100, perSeconds: 600, burst: 100 }],
      });
      const { taskId } = await engine.submit({ taskType: 'noop', queue, cost: { tokens: 10 } });
      const worker = await TestWorker.register(engine, { queues: [queue] });
      const { lease } = await worker.takeOne();
      await stall(server(), taskId, 'completion');
      const result = { taskId, lease, status: 'completed', usage: { tokens: 1_000 } } as const;
      const first = refusal(worker.report(result));
      await untilStalled(server());
      expect(line.cut(lease)).toBe(true);
      expect(await first).toBe('unavailable');
      await untilStatus(engine, taskId, 'completed');
      expect(await worker.report(result)).toMatchObject({ accepted: true });
      const isOwed = async () => ((await engine.getQueue(queue)).live.tokens.tokens ?? 0) < 0;
      await until('the debt to be booked', isOwed, { deadlineMs: 10_000 });
    },
    60_000,
  );
});
