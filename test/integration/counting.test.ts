import { expect, it } from 'vitest';
import type { Engine } from '../../src/engine/open-engine.js';
import { describeOnEveryEngine, drafts, freshQueue, submitAll, TestWorker } from './support.js';

describeOnEveryEngine('R-OB7: what is counted', (under) => {
  const sumOf = async (engine: Engine, metric: string, queue?: string) => {
    const request = { metrics: [metric], ...(queue === undefined ? {} : { queue }) };
    const { values } = await engine.getSeries(request);
    return (values[metric] ?? []).reduce((sum: number, value) => sum + (value ?? 0), 0);
  };

  it('of tokens is what their limit was settled at, however an attempt ends and whatever its worker says', async () => {
    const { engine } = under();
    const queue = freshQueue();
    const limit = { unit: 'tokens', rate: 10_000, perSeconds: 86_400, burst: 10_000 };
    await engine.putQueue(queue, { limits: [limit] });
    await submitAll(engine, drafts(8, { taskType: 'call', queue, cost: { tokens: 100 } }));
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const [silent, said, otherUnit, failed, failedSaid, cancelled, released, dead] =
      await worker.take(8);
    if (
      !silent ||
      !said ||
      !otherUnit ||
      !failed ||
      !failedSaid ||
      !cancelled ||
      !released ||
      !dead
    )
      throw new Error('there are eight');
    const done = { status: 'completed', result: null } as const;
    const error = { code: 'BROKEN', message: 'it broke', retriable: true };
    const leaseOf = ({ taskId, lease }: typeof silent) => ({ taskId, lease });
    await worker.report({ ...leaseOf(silent), ...done });
    await worker.report({ ...leaseOf(said), ...done, usage: { tokens: 7 } });
    await worker.report({ ...leaseOf(otherUnit), ...done, usage: { images: 3 } });
    await worker.report({ ...leaseOf(failed), status: 'failed', error });
    await worker.report({
      ...leaseOf(failedSaid),
      status: 'failed',
      error,
      usage: { tokens: 150 },
    });
    await worker.report({
      ...leaseOf(dead),
      status: 'failed',
      error: { ...error, retriable: false },
    });
    await engine.cancelTask(cancelled.taskId);
    await engine.release(worker.workerId, [released]);

    const { live } = await engine.getQueue(queue);
    expect(live.tokens.tokens).toBe(10_000 - (6 * 100 + 7 + 150));
    expect(await sumOf(engine, 'tokens_reserved', queue)).toBe(800);
    expect(await sumOf(engine, 'tokens_used', queue)).toBe(6 * 100 + 7 + 150);
  });

  it('R-AD3: as refused has submits that were not read because the server had too much to do', async () => {
    const { engine } = under();
    const before = [await sumOf(engine, 'refused'), engine.refused().overload];
    engine.noteShed();
    engine.noteShed();
    const after = [await sumOf(engine, 'refused'), engine.refused().overload];
    expect(after).toEqual(before.map((count) => Number(count) + 2));
  });
});
