import { expect, it } from 'vitest';
import type { AttemptError } from '../../src/domain/attempt-error.js';
import type { Attention } from '../../src/protocol/statistics-api.js';
import { until } from '../support/until.js';
import { broken, describeOnEveryEngine, drafts, submitAll, TestWorker } from './support.js';

const unavailable: AttemptError = { ...broken, code: 'UNAVAILABLE', message: '503' };
const taskType = 'call';

describeOnEveryEngine('what needs attention', (under) => {
  it('R-OB6: finds the queues in trouble among more than a thousand, the worst first, and counts the others', async () => {
    const { engine, clock } = under();
    const worker = await TestWorker.register(engine, { queues: ['zz-stopped'] });
    // They come first by name, and nothing is wrong with them.
    await engine.submitMany(
      Array.from({ length: 1_100 }, (_, n) => ({
        taskType,
        queue: `a-${String(n).padStart(4, '0')}`,
      })),
    );
    expect(await engine.cancelTasks({ taskType, status: 'queued' })).toEqual({
      cancelled: 1_100,
      nextCursor: null,
    });
    let seen: Attention | undefined;
    const look = async () => (seen = await engine.getAttention());
    expect((await look()).queues).toEqual({ items: [], totalCount: 0 });

    await submitAll(engine, drafts(1, { taskType, queue: 'zz-slow' }));
    clock.advance(11 * 60_000);
    await submitAll(engine, drafts(2, { taskType, queue: 'zz-paused' }));
    await engine.pauseQueue('zz-paused');
    for (let n = 0; n < 25; n += 1) await engine.pauseQueue(`zz-idle-${n}`);
    await submitAll(engine, drafts(40, { taskType, queue: 'zz-stopped' }));
    const taken = await worker.take(5);
    await until('they are seen to run', async () => (await engine.getStatistics()).running === 5);
    await engine.report(
      worker.workerId,
      taken.map(({ taskId, lease }) => ({ taskId, lease, status: 'failed', error: unavailable })),
    );
    await until('all of them are found', async () => (await look()).queues.totalCount === 28);
    expect(seen?.queues.items).toHaveLength(20);
    expect(seen?.queues.items.slice(0, 3)).toMatchObject([
      { name: 'zz-stopped', live: { circuit: 'open' } },
      { name: 'zz-slow', live: { depth: { medium: 1 } } },
      { name: 'zz-paused', settings: { paused: true } },
    ]);
    expect(seen?.queues.items[3]?.name).toMatch(/^zz-idle-/);
  });
});
