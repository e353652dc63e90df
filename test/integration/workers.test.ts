import { randomUUID } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';

import type { Lease } from '../../src/domain/ids.js';
import type { PollAnswer } from '../../src/protocol/workers-api.js';
import { staysWithin } from '../support/stays-within.js';
import { until } from '../support/until.js';
import {
  describeOnEveryEngine,
  describeOnPostgres,
  drafts,
  freshQueue,
  refusal,
  submitAll,
  TestWorker,
  untilStatus,
} from './support.js';

const leaseMs = 60_000;

// A long lease: a server that finds itself frozen for half of it blames nobody for a while.
describeOnEveryEngine(
  'workers and their leases',
  (under) => {
    it('R-WO5: heartbeats keep the leases of a worker, whatever time passes', async () => {
      const { engine, clock } = under();
      const queue = freshQueue();
      const worker = await TestWorker.register(engine, { queues: [queue] });
      const silent = await TestWorker.register(engine, { queues: [queue] });
      await submitAll(engine, drafts(2, { taskType: 'long', queue, timeoutSeconds: 3_600 }));
      const held = await worker.take(1);
      const [doomed] = await silent.take(1);
      if (doomed === undefined) throw new Error('one was taken');
      for (let beat = 0; beat < 20; beat++) {
        clock.advance(leaseMs - 1);
        await worker.beat(held);
      }
      // The other one's tasks went back, so this one's were looked at as well.
      const lapsed = await untilStatus(engine, doomed.taskId, 'pending', 'queued');
      expect(lapsed).toMatchObject({ retryCount: 1 });
      for (const task of held) {
        expect(await engine.getTask(task.taskId)).toMatchObject({
          status: 'executing',
          retryCount: 0,
          attempt: 1,
        });
      }
      expect(await refusal(silent.beat([doomed]))).toBe('worker_unknown');
      await worker.completeAll(held);
      await engine.cancelTasks({ queue });
    });

    it('R-RE1: the tasks of a silent worker go to another, each at the cost of a retry', async () => {
      const { engine, clock } = under();
      const queue = freshQueue();
      const silent = await TestWorker.register(engine, { queues: [queue] });
      const taskIds = await submitAll(engine, drafts(20, { taskType: 'noop', queue }));
      const stale = await silent.take(20);
      clock.advance(leaseMs + 1);
      const lapsed = await Promise.all(
        taskIds.map((taskId) => untilStatus(engine, taskId, 'pending', 'queued')),
      );
      expect(lapsed.every(({ retryCount }) => retryCount === 1)).toBe(true);
      // Spread over three seconds, so that they do not come back all at once.
      clock.advance(3_000);
      const worker = await TestWorker.register(engine, { queues: [queue] });
      const tasks = await worker.take(20);
      expect(new Set(tasks.map(({ taskId }) => taskId))).toEqual(new Set(taskIds));
      expect(tasks.every(({ attempt }) => attempt === 2)).toBe(true);
      const [first] = stale;
      if (first === undefined) throw new Error('20 were taken');
      const { history } = await engine.getTask(first.taskId, { history: true });
      expect(history?.attempts).toMatchObject([
        { outcome: 'lapsed', workerId: silent.workerId, error: { code: 'WORKER_LOST' } },
      ]);
      const answers = await silent.completeAll(stale);
      expect(answers.every(({ accepted }) => !accepted)).toBe(true);
      await worker.completeAll(tasks);
    });

    it('R-RE6: a healthy long task is not touched by any sweep', async () => {
      const { engine, clock } = under();
      const queue = freshQueue();
      const worker = await TestWorker.register(engine, { queues: [queue] });
      const { taskId } = await engine.submit({ taskType: 'long', queue, timeoutSeconds: 86_400 });
      const task = await worker.takeOne();
      const before = await engine.getTask(taskId, { history: true });
      for (let sweep = 0; sweep < 10; sweep++) {
        clock.advance(leaseMs - 1);
        await worker.beat([task]);
        // A task that this sweep fails shows that it took place.
        const marker = await engine.submit({
          taskType: 'marker',
          queue: `${queue}-marker`,
          dispatchDeadlineSeconds: 1,
        });
        for (let part = 0; part < 4; part++) {
          clock.advance(leaseMs - 1);
          await worker.beat([task]);
        }
        await untilStatus(engine, marker.taskId, 'failed');
      }
      const after = await engine.getTask(taskId, { history: true });
      const still = { currentStateDurationSeconds: 0, executionDurationSeconds: 0 };
      expect({ ...after, ...still }).toEqual({ ...before, ...still });
      expect(await worker.complete(task)).toMatchObject({ accepted: true });
    });

    it('R-ST3: the tasks of a lost poll response go back at no cost after two heartbeats', async () => {
      const { engine, clock } = under();
      const queue = freshQueue();
      const worker = await TestWorker.register(engine, { queues: [queue] });
      await submitAll(engine, drafts(3, { taskType: 'noop', queue, maxRetries: 0 }));
      const [kept, ...lost] = await worker.take(3);
      if (kept === undefined) throw new Error('3 were taken');
      const statusOfLost = async () =>
        Promise.all(lost.map(async ({ taskId }) => (await engine.getTask(taskId)).status));

      // On its way still, for all that the server knows.
      await worker.beat([kept]);
      await worker.beat([kept]);
      expect(await statusOfLost()).toEqual(['executing', 'executing']);
      clock.advance(101);
      await worker.beat([kept]);
      expect(await statusOfLost()).toEqual(['executing', 'executing']);
      clock.advance(101);
      await worker.beat([kept]);

      const again = await worker.take(2);
      expect(new Set(again.map(({ taskId }) => taskId))).toEqual(
        new Set(lost.map(({ taskId }) => taskId)),
      );
      expect(again.every(({ retryCount, attempt }) => retryCount === 0 && attempt === 2)).toBe(
        true,
      );
      const [first] = lost;
      if (first === undefined) throw new Error('2 were lost');
      expect(await worker.complete(first)).toMatchObject({ accepted: false });
      await worker.completeAll([kept, ...again]);
    });

    it('a heartbeat without a list reconciles nothing', async () => {
      const { engine, clock } = under();
      const queue = freshQueue();
      const worker = await TestWorker.register(engine, { queues: [queue] });
      await engine.submit({ taskType: 'noop', queue });
      const task = await worker.takeOne();
      for (let beat = 0; beat < 5; beat++) {
        clock.advance(200);
        const answer = await engine.heartbeat(worker.workerId, {
          currentLoad: 1,
          status: 'active',
        });
        expect(answer).toEqual({ shouldDrain: false, cancelled: [], lost: [] });
      }
      expect(await worker.complete(task)).toMatchObject({ accepted: true });
    });

    it('R-WO7: cancel wakes the waiting poll of the worker that runs it, though it asks for nothing', async () => {
      const { engine } = under();
      const queue = freshQueue();
      const worker = await TestWorker.register(engine, { queues: [queue] });
      for (let round = 0; round < 50; round++) {
        const { taskId } = await engine.submit({ taskType: 'noop', queue });
        await worker.takeOne();
        // Longer than anybody waits here: a lost wake-up shows as no answer.
        const request = { availableCapacity: 0, waitMs: 600_000 };
        let answer: PollAnswer | null = null;
        const poll = engine.poll(worker.workerId, request).then((came) => (answer = came));
        for (let microtasks = 0; microtasks < round % 10; microtasks++) await Promise.resolve();
        const cancelled = await engine.cancelTask(taskId);
        expect(cancelled).toEqual({ taskId, wasExecuting: true, workerNotified: true });
        await until('the poll to be answered', () => answer);
        expect(await poll).toEqual({ tasks: [], cancelled: [taskId], drain: false });
      }
    });

    it('a cancelled task is told once: by the poll or by the heartbeat, then it is lost', async () => {
      const { engine } = under();
      const queue = freshQueue();
      const worker = await TestWorker.register(engine, { queues: [queue] });
      await engine.submit({ taskType: 'noop', queue });
      const task = await worker.takeOne();
      await engine.cancelTask(task.taskId);
      expect(await worker.beat([task])).toMatchObject({ cancelled: [task.taskId], lost: [] });
      // Should that answer never have arrived, the next one says it in another way.
      expect(await worker.beat([task])).toMatchObject({ cancelled: [], lost: [task.taskId] });
      expect(await worker.beat([])).toMatchObject({ cancelled: [], lost: [] });
    });

    it('R-WO8: a worker told to drain gets nothing more, at once, and keeps what it has', async () => {
      const { engine } = under();
      const queue = freshQueue();
      const worker = await TestWorker.register(engine, { queues: [queue] });
      await engine.submit({ taskType: 'noop', queue });
      const task = await worker.takeOne();
      const poll = engine.poll(worker.workerId, { availableCapacity: 5, waitMs: 120_000 });
      await engine.drainWorker(worker.workerId);
      expect(await poll).toEqual({ tasks: [], cancelled: [], drain: true });
      await engine.submit({ taskType: 'noop', queue });
      expect(await worker.look(5, { waitMs: 200 })).toEqual([]);
      expect(await worker.beat([task])).toMatchObject({ shouldDrain: true });
      expect(await worker.complete(task)).toMatchObject({ accepted: true });
      await engine.deregister(worker.workerId);
      expect((await engine.getWorker(worker.workerId)).status).toBe('dead');
      await engine.cancelTasks({ queue });
    });

    it('R-WO8: a worker that deregisters gives back what it holds at no cost', async () => {
      const { engine } = under();
      const queue = freshQueue();
      const leaving = await TestWorker.register(engine, { queues: [queue] });
      await submitAll(engine, drafts(50, { taskType: 'noop', queue, maxRetries: 0 }));
      const held = await leaving.take(50);
      await engine.deregister(leaving.workerId);
      expect(await refusal(leaving.beat(held))).toBe('worker_unknown');
      expect(await refusal(leaving.look())).toBe('worker_unknown');
      const worker = await TestWorker.register(engine, { queues: [queue] });
      const tasks = await worker.take(50);
      expect(tasks.every(({ retryCount, attempt }) => retryCount === 0 && attempt === 2)).toBe(
        true,
      );
      await worker.completeAll(tasks);
    });

    it('R-CH3: what a poll names replaces what was registered, for this poll', async () => {
      const { engine } = under();
      const queue = freshQueue();
      const worker = await TestWorker.register(engine, { queues: [queue], taskTypes: ['a'] });
      await engine.submit({ taskType: 'a', queue });
      await engine.submit({ taskType: 'b', queue });
      await engine.submit({ taskType: 'b', queue, requiredCapabilities: ['gpu', 'big'] });
      expect(await worker.look(5, { taskTypes: ['b'], queues: ['elsewhere'] })).toEqual([]);
      const plain = await worker.look(5, { taskTypes: ['b'] });
      expect(plain.map(({ taskType }) => taskType)).toEqual(['b']);
      const able = await worker.look(5, { taskTypes: ['*'], capabilities: ['big', 'gpu', 'x'] });
      expect(able.map(({ taskType }) => taskType)).toEqual(['a', 'b']);
      await worker.completeAll([...plain, ...able]);
    });
  },
  { leaseMs, heartbeatIntervalMs: 100, unstartedMs: 30_000 },
);

describeOnPostgres('workers across a restart of the server', (server) => {
  it('R-RE1: a lease lapses only after one full lease of hearing, and then at no cost', async () => {
    const first = await server().open({ settings: { leaseMs } });
    const worker = await TestWorker.register(first, { queues: ['orphans'] });
    // More than one sweep takes at once.
    const taskIds = await submitAll(
      first,
      drafts(1_500, { taskType: 'noop', queue: 'orphans', maxRetries: 0 }),
    );
    await worker.take(1_500);
    await first.close();
    await server().sql("update sluice.workers set last_heartbeat_at = now() - interval '1 hour'");

    const [before] = await server().sql<{ at: Date }>('select now() as at');
    const second = await server().open({ settings: { leaseMs: 5_000, heartbeatIntervalMs: 500 } });
    const lapses = await until('all of them to lapse', async () => {
      const [row] = await server().sql<{ count: number; first: Date; retries: number }>(
        `select count(*)::int as count, sum(retry_count)::int as retries,
           min((past_attempts[1] ->> 'ended_at')::timestamptz) as first
         from sluice.tasks where past_attempts[1] ->> 'outcome' = 'lapsed'`,
      );
      return row?.count === taskIds.length ? row : null;
    });
    const heardMs = lapses.first.getTime() - (before?.at.getTime() ?? Infinity);
    expect(heardMs).toBeGreaterThanOrEqual(5_000);
    expect(lapses.retries).toBe(0);
    expect(await second.cancelTasks({ queue: 'orphans' })).toEqual({
      cancelled: 1_500,
      nextCursor: null,
    });
  });

  it('R-WO9: a worker that goes on through a restart keeps its leases under its id', async () => {
    const first = await server().open();
    const worker = await TestWorker.register(first, { queues: ['kept'] });
    await submitAll(first, drafts(10, { taskType: 'noop', queue: 'kept' }));
    const held = await worker.take(10);
    await first.close();

    const second = await server().open();
    const same = new TestWorker(second, worker.workerId);
    expect(await same.beat(held)).toMatchObject({ lost: [] });
    expect(await same.look(5)).toEqual([]);
    const answers = await same.completeAll(held);
    expect(answers.every(({ accepted }) => accepted)).toBe(true);
  });

  it('R-WO9: a worker declared dead registers again, and leases it still holds stay good', async () => {
    const settings = { sweepIntervalMs: 3_600_000 };
    const engine = await server().open({ settings });
    const worker = await TestWorker.register(engine, { queues: ['adopted'] });
    await submitAll(engine, drafts(3, { taskType: 'noop', queue: 'adopted' }));
    const held = await worker.take(3);
    await server().sql("update sluice.workers set status = 'dead'");
    expect(await refusal(worker.beat(held))).toBe('worker_unknown');
    expect(await refusal(worker.look())).toBe('worker_unknown');

    const again = await TestWorker.register(engine);
    const currentTasks = held.map(({ taskId }) => taskId);
    const beat = { currentLoad: 3, status: 'active', currentTasks } as const;
    // R-AD6: who knows the id of a task has not got its lease.
    const guesser = await TestWorker.register(engine);
    expect(await engine.heartbeat(guesser.workerId, beat)).toMatchObject({ lost: currentTasks });
    const leases = held.map(() => randomUUID() as string as Lease);
    expect(await engine.heartbeat(guesser.workerId, { ...beat, leases })).toMatchObject({
      lost: currentTasks,
    });
    expect(await again.beat(held)).toMatchObject({ lost: [] });
    const views = await Promise.all(held.map(({ taskId }) => engine.getTask(taskId)));
    expect(views.every(({ assignedWorkerId }) => assignedWorkerId === again.workerId)).toBe(true);
    expect(await again.beat(held)).toMatchObject({ lost: [] });

    // With a sweeper that sees nothing to recover.
    await engine.close();
    const sweeping = await server().open({ settings: { leaseMs: 60_000 } });
    const same = new TestWorker(sweeping, again.workerId);
    const marker = await sweeping.submit({ taskType: 'x', dispatchDeadlineSeconds: 0 });
    await untilStatus(sweeping, marker.taskId, 'failed');
    const answers = await same.completeAll(held);
    expect(answers.every(({ accepted }) => accepted)).toBe(true);
  });

  it('R-RE1: a lease that is short beside the sweep lapses all the same, and its task goes on at once', async () => {
    const settings = { leaseMs: 3_500, heartbeatIntervalMs: 100, sweepIntervalMs: 3_000 };
    const engine = await server().open({ settings });
    let lapsedMs = 0;
    engine.subscribe(({ outcome }) => {
      if (outcome === 'lapsed') lapsedMs = performance.now();
    });
    const other = await TestWorker.register(engine, { queues: ['short-lease'] });
    onTestFinished(other.keepBeating(50));
    const lapse = async () => {
      const silent = await TestWorker.register(engine, { queues: ['short-lease'] });
      const stopBeating = silent.keepBeating(50);
      const { taskId } = await engine.submit({ taskType: 'noop', queue: 'short-lease' });
      await silent.takeOne();
      stopBeating();
      const again = await other.takeOne();
      expect(again.taskId).toBe(taskId);
      expect(again.attempt).toBeGreaterThan(1);
      await other.complete(again);
      // A server that was frozen for half of the lease blames nobody.
      const isBlamed = again.retryCount === again.attempt - 1;
      return isBlamed ? performance.now() - lapsedMs : Infinity;
    };
    // Alone, it has no herd to be spread over seconds with.
    expect(await staysWithin(1_000, lapse)).toBe(true);
  });

  it('R-ST3: nobody adopts the tasks of a living worker', async () => {
    const engine = await server().open();
    const worker = await TestWorker.register(engine, { queues: ['mine'] });
    const thief = await TestWorker.register(engine);
    await engine.submit({ taskType: 'noop', queue: 'mine' });
    const task = await worker.takeOne();
    expect(await thief.beat([task])).toMatchObject({ lost: [task.taskId] });
    expect((await engine.getTask(task.taskId)).assignedWorkerId).toBe(worker.workerId);
    await worker.complete(task);
  });

  it('R-RE6: a row that somebody holds locked does not keep the sweeper from the others', async () => {
    const engine = await server().open({
      settings: { unstartedMs: 300, heartbeatIntervalMs: 100 },
    });
    const worker = await TestWorker.register(engine, { queues: ['locked'] });
    const taskIds = await submitAll(engine, drafts(20, { taskType: 'noop', queue: 'locked' }));
    const [lockedId, ...others] = taskIds;
    const holder = await server().connect();
    await worker.take(20, { prefetch: true });
    await holder.query('begin');
    await holder.query('select from sluice.tasks where id = $1 for update', [lockedId]);
    await Promise.all(others.map((taskId) => untilStatus(engine, taskId, 'pending', 'queued')));
    const marker = await engine.submit({ taskType: 'x', dispatchDeadlineSeconds: 0 });
    await untilStatus(engine, marker.taskId, 'failed');
    await holder.query('commit');
    if (lockedId !== undefined) await untilStatus(engine, lockedId, 'pending', 'queued');
  });

  it('R-WO8: a worker that could not give back one task has lost none to the sweeper', async () => {
    const engine = await server().open();
    const worker = await TestWorker.register(engine, { queues: ['stubborn'] });
    const [lockedId] = await submitAll(
      engine,
      drafts(5, { taskType: 'noop', queue: 'stubborn', maxRetries: 0 }),
    );
    await worker.take(5);
    const holder = await server().connect();
    await holder.query('begin');
    await holder.query('select from sluice.tasks where id = $1 for update', [lockedId]);
    expect(await refusal(engine.deregister(worker.workerId))).toBe('unavailable');
    await holder.query('commit');
    const marker = await engine.submit({ taskType: 'x', dispatchDeadlineSeconds: 0 });
    await untilStatus(engine, marker.taskId, 'failed');
    await engine.deregister(worker.workerId);
    const other = await TestWorker.register(engine, { queues: ['stubborn'] });
    const tasks = await other.take(5);
    expect(tasks.every(({ retryCount }) => retryCount === 0)).toBe(true);
    await other.completeAll(tasks);
  });
});
