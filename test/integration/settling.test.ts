import { expect, it } from 'vitest';

import type { Engine } from '../../src/engine/open-engine.js';
import {
  broken,
  describeOnEveryEngine,
  drafts,
  freshQueue,
  submitAll,
  TestWorker,
} from './support.js';

const tokens = { unit: 'tokens', rate: 1_000, perSeconds: 3_600, burst: 1_000 };

async function tokensLeft(engine: Engine, queue: string): Promise<number | undefined> {
  const { live } = await engine.getQueue(queue);
  return live.tokens.tokens;
}

describeOnEveryEngine('usage of attempts that failed', (under) => {
  it.each([
    ['more than was reserved', 700, 300],
    ['less than was reserved', 100, 900],
    ['more than there is: the limit is in debt', 1_500, -500],
  ])('R-CH5: %s', async (_, used, left) => {
    const { engine } = under();
    const queue = freshQueue();
    await engine.putQueue(queue, { limits: [tokens] });
    const worker = await TestWorker.register(engine, { queues: [queue] });
    await submitAll(engine, drafts(1, { taskType: 'chat', queue, cost: { tokens: 400 } }));
    const { taskId, lease } = await worker.takeOne();
    expect(await tokensLeft(engine, queue)).toBeCloseTo(600, 0);
    const report = { taskId, lease, status: 'failed', error: broken } as const;
    await worker.report({ ...report, usage: { tokens: used } });
    expect(await tokensLeft(engine, queue)).toBeCloseTo(left, 0);
    // Sent again, it is settled no second time.
    await worker.report({ ...report, usage: { tokens: used } });
    expect(await tokensLeft(engine, queue)).toBeCloseTo(left, 0);
    await engine.cancelTasks({ queue });
  });

  it('R-CH5: a failure that says nothing of it costs what was reserved; a deferral settles too', async () => {
    const { engine } = under();
    const queue = freshQueue();
    await engine.putQueue(queue, { limits: [tokens] });
    const worker = await TestWorker.register(engine, { queues: [queue] });
    await submitAll(engine, drafts(2, { taskType: 'chat', queue, cost: { tokens: 400 } }));
    await worker.fail(await worker.takeOne());
    expect(await tokensLeft(engine, queue)).toBeCloseTo(600, 0);
    const { taskId, lease } = await worker.takeOne();
    const error = { ...broken, code: 'RATE_LIMITED', retryAfterSeconds: 60 };
    await worker.report({ taskId, lease, status: 'failed', error, usage: { tokens: 0 } });
    expect(await tokensLeft(engine, queue)).toBeCloseTo(600, 0);
    await engine.cancelTasks({ queue });
  });
});
