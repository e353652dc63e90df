import { expect, it } from 'vitest';
import { taskPolicy } from '../../src/domain/task-policy.js';
import { ManualClock } from '../../src/runtime/clock.js';
import {
  describeOnEveryEngine,
  describeOnPostgres,
  freshQueue,
  TestWorker,
  untilStatus,
  type EngineUnderTest,
} from './support.js';

const settings = {
  tasks: taskPolicy({
    maxRetries: { high: 4, low: 3 },
    timeoutSeconds: { high: 17 },
    maxBackoffSeconds: { low: 1 },
    maxRetriesByError: { FLAKY: 1, HOPELESS: 0 },
    dispatchDeadlineSeconds: 60,
  }),
};

describeOnEveryEngine('R-OB13: settings of tasks', settingsOfTasks, settings);

const leaseMs = 60_000;
const byError = { WORKER_LOST: 0, TIMEOUT: 1 };

describeOnPostgres('R-OB13: retries by error class', (server) => {
  it('limits what lost its worker and what timed out, each by its own number', async () => {
    const clock = new ManualClock(Date.now());
    const engine = await server().open({
      clock,
      random: () => 0.5,
      settings: { leaseMs, tasks: taskPolicy({ maxRetriesByError: byError }) },
    });
    const queue = freshQueue();
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const draft = { taskType: 't', queue, maxRetries: 5, timeoutSeconds: 10 };
    const slow = await engine.submit(draft);
    const timedOut = { code: 'TIMEOUT', message: 'too slow', retriable: true };
    await worker.fail(await worker.takeOne(), timedOut);
    expect(await engine.getTask(slow.taskId)).toMatchObject({ status: 'pending', retryCount: 1 });
    clock.advance(20_000);
    // The second time its worker does not say so, and the sweeper ends the attempt.
    await worker.takeOne();
    clock.advance(25_000);
    await worker.beat([]);
    const dead = await untilStatus(engine, slow.taskId, 'dead_letter');
    expect(dead).toMatchObject({ retryCount: 1, error: { code: 'TIMEOUT' } });
    const lost = await engine.submit({ ...draft, timeoutSeconds: 3_600 });
    await worker.takeOne();
    clock.advance(leaseMs + 1);
    expect(await untilStatus(engine, lost.taskId, 'dead_letter')).toMatchObject({
      retryCount: 0,
      error: { code: 'WORKER_LOST' },
    });
  });
});

function settingsOfTasks(under: () => EngineUnderTest): void {
  it('count for tasks that do not say it themselves', async () => {
    const { engine } = under();
    const queue = freshQueue();
    const plain = await engine.submit({ taskType: 't', queue, priority: 'high' });
    expect(await engine.getTask(plain.taskId)).toMatchObject({
      maxRetries: 4,
      timeoutSeconds: 17,
      dispatchDeadline: expect.any(Date) as Date,
    });
    const own = { maxRetries: 0, timeoutSeconds: 5, dispatchDeadlineSeconds: null };
    const explicit = await engine.submit({ taskType: 't', queue, priority: 'high', ...own });
    expect(await engine.getTask(explicit.taskId)).toMatchObject({
      maxRetries: 0,
      timeoutSeconds: 5,
      dispatchDeadline: null,
    });
  });

  it('cap the pause before a retry', async () => {
    const { engine, clock } = under();
    const queue = freshQueue();
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const { taskId } = await engine.submit({ taskType: 't', queue, priority: 'low' });
    for (const retry of [1, 2, 3]) {
      await worker.fail(await worker.takeOne());
      const { runAt, retryCount } = await engine.getTask(taskId);
      expect(retryCount).toBe(retry);
      expect((runAt?.getTime() ?? Infinity) - clock.nowMs()).toBeLessThanOrEqual(1_000);
      clock.advance(1_000);
    }
  });

  it('limit the retries by error code', async () => {
    const { engine, clock } = under();
    const queue = freshQueue();
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const hopeless = await engine.submit({ taskType: 't', queue, priority: 'low' });
    await worker.fail(await worker.takeOne(), { code: 'HOPELESS' });
    expect(await engine.getTask(hopeless.taskId)).toMatchObject({ status: 'dead_letter' });
    const flaky = await engine.submit({ taskType: 't', queue, priority: 'low' });
    await worker.fail(await worker.takeOne(), { code: 'FLAKY' });
    expect(await engine.getTask(flaky.taskId)).toMatchObject({ status: 'pending' });
    clock.advance(1_000);
    await worker.fail(await worker.takeOne(), { code: 'FLAKY' });
    expect(await engine.getTask(flaky.taskId)).toMatchObject({
      status: 'dead_letter',
      retryCount: 1,
    });
  });

  it('fail a task that no worker took before the deadline of the setting', async () => {
    const { engine, clock } = under();
    const { taskId } = await engine.submit({ taskType: 'nobody', queue: freshQueue() });
    clock.advance(61_000);
    const ended = await untilStatus(engine, taskId, 'failed');
    expect(ended.error).toMatchObject({ code: 'capacity' });
  });

  it('give a worker that names no capacity five tasks at once', async () => {
    const { engine } = under();
    const { workerId } = await engine.register({ taskTypes: ['t'] });
    expect(await engine.getWorker(workerId)).toMatchObject({ capacity: 5 });
  });
}
