import { expect, it } from 'vitest';

import { describeOnPostgres, freshQueue, refusal, TestWorker, untilStatus } from './support.js';
import { openOnHeldLine, stall, untilStalled } from './stalls.js';

describeOnPostgres('connections that fall silent', (server) => {
  const open = (askMs = 60_000) => openOnHeldLine(server(), undefined, { quietMs: 200, askMs });

  it('R-RE8: a result whose answer does not come is refused, and reported again', async () => {
    const { engine, line } = await open();
    const queue = freshQueue();
    const { taskId } = await engine.submit({ taskType: 'noop', queue });
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const { lease } = await worker.takeOne();
    await stall(server(), taskId, 'completion');
    const result = { taskId, lease, status: 'completed' } as const;
    const first = refusal(worker.report(result));
    await untilStalled(server());
    expect(line.hold(lease)).toBe(true);
    expect(await first).toBe('unavailable');
    await untilStatus(engine, taskId, 'completed');
    expect(await worker.report(result)).toMatchObject({ accepted: true });
  });

  it('R-RE8: while nothing answers, calls are refused; afterwards work goes on', async () => {
    const { engine, line } = await open(500);
    const queue = freshQueue();
    const draft = { taskType: 'noop', queue, idempotencyKey: queue };
    const worker = await TestWorker.register(engine, { queues: [queue] });
    line.freeze();
    expect(await refusal(engine.submit(draft))).toBe('unavailable');
    expect(await refusal(engine.listQueues())).toBe('unavailable');
    line.letGo();
    const { taskId } = await untilAccepted(() => engine.submit(draft));
    const task = await worker.takeOne();
    expect(task.taskId).toBe(taskId);
    await untilAccepted(() => worker.complete(task));
    expect(await worker.look(1, { waitMs: 200 })).toEqual([]);
  });

  it('R-RE8: a statement that Postgres takes its time for is waited for', async () => {
    const { engine } = await open();
    const queue = freshQueue();
    const { taskId } = await engine.submit({ taskType: 'noop', queue });
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const task = await worker.takeOne();
    await stall(server(), taskId, 'completion');
    expect(await worker.complete(task)).toMatchObject({ accepted: true });
  });
});

/** As a caller does that is told when to come back. */
async function untilAccepted<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    const answer = call();
    if ((await refusal(answer)) === null) return answer;
  }
}
