import { expect, it } from 'vitest';

import { priorities } from '../../src/domain/priority.js';
import type { ClaimedTask } from '../../src/protocol/workers-api.js';
import { staysWithin } from '../support/stays-within.js';
import { until } from '../support/until.js';
import {
  describeOnEveryEngine,
  describeOnPostgres,
  disorder,
  drafts,
  freshQueue,
  indexOf,
  refusal,
  submitAll,
  TestWorker,
  untilStatus,
} from './support.js';

describeOnEveryEngine('choosing what runs next', (under) => {
  it('R-CH1: strictly by priority, in the order of submission inside one', async () => {
    const { engine } = under();
    const queue = freshQueue();
    const submitted = Array.from({ length: 60 }, (_, index) => ({
      taskType: 'noop',
      queue,
      priority: priorities[index % 3] ?? 'low',
      parameters: { index },
    }));
    await Promise.all(submitted.map((draft) => engine.submit(draft)));
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const taken = await worker.take(60);
    const wanted = priorities.flatMap((priority) =>
      submitted.filter((draft) => draft.priority === priority),
    );
    expect(taken.map(indexOf)).toEqual(wanted.map(indexOf));
    await worker.completeAll(taken);
  });

  it('R-CH2: under endless high-priority load a low task has its turn when it reached high', async () => {
    const { engine, clock } = under();
    const queue = freshQueue();
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const low = await engine.submit({ taskType: 'low', queue, priority: 'low' });
    // At every look a younger one of high priority waits, and goes first until the very minute.
    for (let minute = 0; minute < 30; minute++) {
      const high = await engine.submit({ taskType: 'high', queue, priority: 'high' });
      const task = await worker.takeOne();
      expect(task.taskId).toBe(high.taskId);
      await worker.complete(task);
      clock.advance(60_000);
    }
    await engine.submit({ taskType: 'high', queue, priority: 'high' });
    const task = await worker.takeOne();
    expect(task).toMatchObject({
      taskId: low.taskId,
      priority: 'low',
      effectivePriority: 'high',
    });
    await worker.completeAll([task, ...(await worker.take(1))]);
  });

  it('R-CH11: delayed tasks run not before their time, and then at once, the earlier first', async () => {
    const { engine, clock } = under();
    const queue = freshQueue();
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const runAt = new Date(clock.nowMs() + 3_600_000);
    const hour = await engine.submit({ taskType: 'noop', queue, runAt });
    const minute = await engine.submit({ taskType: 'noop', queue, delaySeconds: 60 });
    const past = await engine.submit({ taskType: 'noop', queue, runAt: new Date(0) });
    expect([hour.status, minute.status, past.status]).toEqual(['pending', 'pending', 'queued']);

    expect((await worker.takeOne()).taskId).toBe(past.taskId);
    clock.advance(59_999);
    expect(await worker.look(10, { waitMs: 100 })).toEqual([]);
    clock.advance(1);
    expect((await worker.takeOne()).taskId).toBe(minute.taskId);
    clock.advance(3_540_000);
    const last = await worker.takeOne();
    expect(last.taskId).toBe(hour.taskId);
    expect((await engine.getTask(hour.taskId)).eligibleAt).toEqual(runAt);
  });

  it('R-CH11: a task that nobody took before its dispatch deadline fails for capacity', async () => {
    const { engine, clock } = under();
    const queue = freshQueue();
    const late = await engine.submit({ taskType: 'noop', queue, dispatchDeadlineSeconds: 30 });
    const delayed = await engine.submit({
      taskType: 'noop',
      queue,
      dispatchDeadlineSeconds: 30,
      delaySeconds: 60,
    });
    clock.advance(30_001);
    const failed = await untilStatus(engine, late.taskId, 'failed');
    expect(failed).toMatchObject({ error: { code: 'capacity' }, attempt: 0 });
    // Its deadline is counted from when it could have been taken.
    expect((await engine.getTask(delayed.taskId)).status).toBe('pending');
    const worker = await TestWorker.register(engine, { queues: [queue] });
    expect(await worker.look()).toEqual([]);
    clock.advance(60_000);
    await untilStatus(engine, delayed.taskId, 'failed');

    await engine.replayTask(late.taskId);
    const task = await worker.takeOne();
    expect(task.taskId).toBe(late.taskId);
    await worker.complete(task);
  });

  it('R-CH11: a deadline that was met is met: neither the run nor its retry fails for capacity', async () => {
    const { engine, clock } = under();
    const queue = freshQueue();
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const { taskId } = await engine.submit({
      taskType: 'noop',
      queue,
      dispatchDeadlineSeconds: 30,
    });
    const task = await worker.takeOne();
    clock.advance(120_000);
    const marker = await engine.submit({ taskType: 'noop', queue, dispatchDeadlineSeconds: 1 });
    clock.advance(2_000);
    await untilStatus(engine, marker.taskId, 'failed');
    expect((await engine.getTask(taskId)).status).toBe('executing');

    await worker.fail(task);
    const second = await engine.submit({ taskType: 'noop', queue, dispatchDeadlineSeconds: 1 });
    clock.advance(1_001);
    await untilStatus(engine, second.taskId, 'failed');
    expect((await engine.getTask(taskId)).status).toBe('pending');
    clock.advance(1_000);
    const retried = await worker.takeOne();
    expect(retried).toMatchObject({ taskId, attempt: 2 });
    await worker.complete(retried);
  });

  it('R-CH7, R-CH9: a pause counts for the very next take and holds up nobody else', async () => {
    const { engine } = under();
    const [paused, open] = [freshQueue(), freshQueue()];
    const worker = await TestWorker.register(engine, { queues: [paused, open] });
    await submitAll(engine, drafts(20, { taskType: 'noop', queue: paused }));
    await engine.pauseQueue(paused);
    await submitAll(engine, drafts(20, { taskType: 'noop', queue: open }));
    const taken = await worker.take(20);
    expect(new Set(taken.map(({ queue }) => queue))).toEqual(new Set([open]));

    const waiting = worker.take(20);
    await engine.resumeQueue(paused);
    const rest = await waiting;
    expect(disorder(rest, 20)).toBe('none');
    await worker.completeAll([...taken, ...rest]);
  });

  it('a task that waits can be given another priority or time, and keeps to it', async () => {
    const { engine, clock } = under();
    const queue = freshQueue();
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const [first, second, third] = await submitAll(
      engine,
      drafts(3, { taskType: 'noop', queue, priority: 'low' }),
    );
    if (first === undefined || second === undefined || third === undefined) {
      throw new Error('3 were submitted');
    }
    const runAt = new Date(clock.nowMs() + 60_000);
    const urgent = await engine.changeTask(third, { priority: 'high' });
    expect(urgent.priority).toBe('high');
    expect(await engine.changeTask(first, { runAt })).toMatchObject({ status: 'pending', runAt });
    await until('the two that may run to be offered as they are now', async () => {
      const { depth } = (await engine.getQueue(queue)).live;
      return depth.high === 1 && depth.low === 1;
    });
    const taken = [await worker.takeOne(), await worker.takeOne()];
    expect(taken.map(({ taskId }) => taskId)).toEqual([third, second]);
    expect(await worker.look(1, { waitMs: 50 })).toEqual([]);
    expect(await refusal(engine.changeTask(third, { priority: 'low' }))).toBe('task_started');

    await engine.changeTask(first, { runAt: new Date(clock.nowMs()) });
    taken.push(await worker.takeOne());
    expect(taken[2]?.taskId).toBe(first);
    await worker.completeAll(taken);
    expect(await refusal(engine.changeTask(first, { priority: 'low' }))).toBe('task_ended');
  });

  it('R-CH6: no more than max_concurrency of a queue run at once', async () => {
    const { engine } = under();
    const queue = freshQueue();
    await engine.putQueue(queue, { maxConcurrency: 3 });
    await submitAll(engine, drafts(10, { taskType: 'noop', queue }));
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const running = [...(await worker.take(3))];
    for (let done = 0; done < 7; done++) {
      expect(await worker.look(10)).toEqual([]);
      const next = worker.takeOne();
      const [first] = running.splice(0, 1);
      if (first !== undefined) await worker.complete(first);
      running.push(await next);
    }
    await worker.completeAll(running);
  });

  it('a poll that waits is woken by the submit, every time', async () => {
    const { engine } = under();
    const queue = freshQueue();
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const wake = async (microtasks: number) => {
      const poll = worker.look(1, { waitMs: 60_000 });
      for (let passed = 0; passed < microtasks; passed++) await Promise.resolve();
      await engine.submit({ taskType: 'noop', queue });
      const submittedMs = performance.now();
      const tasks = await poll;
      const tookMs = performance.now() - submittedMs;
      expect(tasks).toHaveLength(1);
      await worker.completeAll(tasks);
      return tookMs;
    };
    for (let round = 0; round < 200; round++) {
      // Shorter than the safety net of a poll, by which a lost wake-up shows.
      expect(await staysWithin(4_000, () => wake(round % 20))).toBe(true);
    }
  });
});

describeOnPostgres('choosing among very many', (server) => {
  it.each([10_000, 500])(
    'R-CH1, R-CH8: 10,000 tasks are taken in the order of submission with max_ready at %i',
    async (maxReady) => {
      const engine = await server().open();
      const queue = `line-${maxReady}`;
      await engine.putQueue(queue, { maxReady });
      const worker = await TestWorker.register(engine, { queues: [queue] });
      const taken: ClaimedTask[] = [];
      const submitting = submitAll(engine, drafts(10_000, { taskType: 'noop', queue }));
      while (taken.length < 10_000) {
        const some = await worker.take(Math.min(200, 10_000 - taken.length));
        taken.push(...some);
        await worker.completeAll(some);
      }
      await submitting;
      expect(disorder(taken, 10_000)).toBe('none');
    },
  );

  it('R-CH9: a full queue that nobody serves does not hold up another', async () => {
    const engine = await server().open();
    await engine.putQueue('full', { maxReady: 10 });
    await engine.putQueue('stopped', { paused: true, maxReady: 10 });
    await submitAll(engine, drafts(5_000, { taskType: 'unserved', queue: 'full' }));
    await submitAll(engine, drafts(5_000, { taskType: 'served', queue: 'stopped' }));
    const worker = await TestWorker.register(engine, {
      taskTypes: ['served'],
      queues: ['stopped', 'flowing'],
    });
    await submitAll(engine, drafts(2_000, { taskType: 'served', queue: 'flowing' }));
    const taken = await worker.take(2_000);
    expect(disorder(taken, 2_000)).toBe('none');
    await worker.completeAll(taken);
    await until('the full queue to hold what it may', async () => {
      const { live } = await engine.getQueue('full');
      return live.depth.medium === 10;
    });
  });

  it('R-CH1: a queue with very many older tasks and its neighbour take turns', async () => {
    const engine = await server().open();
    await submitAll(engine, drafts(20_000, { taskType: 'noop', queue: 'crowded' }));
    await submitAll(engine, drafts(50, { taskType: 'noop', queue: 'quiet' }));
    const worker = await TestWorker.register(engine, { queues: ['crowded', 'quiet'] });
    const taken = await worker.take(100);
    const quiet = taken.filter(({ queue }) => queue === 'quiet');
    expect(disorder(quiet, 50)).toBe('none');
    expect(
      taken
        .slice(0, 10)
        .map(({ queue }) => queue)
        .sort(),
    ).toEqual([
      ...Array.from({ length: 5 }, () => 'crowded'),
      ...Array.from({ length: 5 }, () => 'quiet'),
    ]);
  });

  it('R-CH3, R-CH8: 100,000 tasks it cannot do keep nothing from a worker, in the same small queue', async () => {
    const engine = await server().open();
    const queue = 'mixed';
    await engine.putQueue(queue, { maxReady: 100 });
    await submitAll(
      engine,
      drafts(100_000, { taskType: 'render', queue, requiredCapabilities: ['gpu'] }),
    );
    await submitAll(engine, drafts(500, { taskType: 'render', queue }));

    const worker = await TestWorker.register(engine, { queues: [queue], capabilities: ['cpu'] });
    const taken: ClaimedTask[] = [];
    while (taken.length < 500) {
      const { live } = await engine.getQueue(queue);
      // Two lanes of one priority.
      expect(live.depth.medium).toBeLessThanOrEqual(200);
      taken.push(...(await worker.take(Math.min(50, 500 - taken.length))));
    }
    expect(disorder(taken, 500)).toBe('none');
    expect(await worker.look(50)).toEqual([]);

    const able = await TestWorker.register(engine, {
      queues: [queue],
      capabilities: ['gpu', 'cpu'],
    });
    const rendered = await able.take(300);
    expect(disorder(rendered, 300)).toBe('none');
  });
});
