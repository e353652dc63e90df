import { expect, it } from 'vitest';

import {
  backToPending,
  claimOf,
  claimOne,
  newTask,
  newTaskId,
  newTasks,
  newWorkerId,
  rowOf,
  submitOne,
} from '../../test/store/lifecycle.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import type { TaskId } from '../domain/ids.js';
import { claimTasks } from './claim-tasks.js';
import { endAttempts } from './end-attempts.js';
import { submitTasks } from './submit-tasks.js';

const now = new Date();
const later = (ms: number): Date => new Date(now.getTime() + ms);

describeOnEveryDatabase('claimTasks', (db) => {
  it('gives a worker that starts at once all it needs, and a lease', async () => {
    const task = newTask({
      queue: 'gpt',
      priority: 'high',
      parametersJson: '{"prompt":"hi"}',
      timeoutSeconds: 60,
      costJson: '{"tokens":5}',
      trace: 'trace',
    });
    await submitTasks(db(), [task], now);
    const workerId = newWorkerId();
    const claimed = await claimOne(db(), task.taskId, { workerId }, later(1_234));
    expect(claimed).toEqual({
      taskId: task.taskId,
      taskType: 'chat',
      queue: 'gpt',
      parameters: { prompt: 'hi' },
      timeoutSeconds: 60,
      attempt: 1,
      lease: claimed.lease,
      priority: 'high',
      retryCount: 0,
      workflowId: null,
      trace: 'trace',
      workerId,
      lapsesAt: later(1_234 + 60_000),
      waitedMs: 1_234,
      inLineMs: 1_234,
      cost: { tokens: 5 },
      bytes: 15,
    });
    expect(await rowOf(db(), task.taskId)).toMatchObject({
      status: 'executing',
      lease: claimed.lease,
      worker_id: workerId,
      assigned_at: later(1_234),
      started_at: later(1_234),
      lapses_at: later(61_234),
    });
  });

  it('a worker that prefetches has as long to start as it is told', async () => {
    const { taskId } = await submitOne(db(), {}, now);
    const claimed = await claimOne(db(), taskId, { start: false }, now);
    expect(claimed).toMatchObject({ lapsesAt: later(30_000), cost: {} });
    expect(await rowOf(db(), taskId)).toMatchObject({ status: 'assigned', started_at: null });
  });

  it('R-HA3: ends with the task that takes it past its bytes; the rest stays queued', async () => {
    const tasks = newTasks(6, { parametersJson: `{"text":"${'x'.repeat(989)}"}` });
    await submitTasks(db(), tasks, null);
    const claims = tasks.map(({ taskId }) => claimOf(taskId));
    const claimed = await claimTasks(db(), claims, 0, 30_000, null, 2_500);
    expect(claimed.map(({ taskId }) => taskId)).toEqual(
      tasks.slice(0, 3).map(({ taskId }) => taskId),
    );
    expect(claimed.map(({ bytes }) => bytes)).toEqual([1_000, 1_000, 1_000]);
    for (const { taskId } of tasks.slice(3)) {
      expect(await rowOf(db(), taskId)).toMatchObject({ status: 'queued', attempt: 0 });
    }
    const rest = await claimTasks(db(), claims.slice(3), 0, 30_000, null, 1);
    expect(rest).toHaveLength(1);
  });

  it('R-ST1: refuses what is not queued, and gives the rest in the order asked', async () => {
    const queued = newTasks(5);
    const [gone, pending] = [newTask(), newTask({ delaySeconds: 60 })];
    await submitTasks(db(), [...queued, pending, gone], null);
    await claimOne(db(), gone.taskId);
    const order = queued.map((task) => task.taskId).toReversed();
    const wanted = [gone.taskId, ...order, pending.taskId, newTaskId()];
    const claimed = await claimTasks(
      db(),
      wanted.map((taskId) => claimOf(taskId)),
      0,
      30_000,
      null,
    );
    expect(claimed.map((row) => row.taskId)).toEqual(order);
  });

  it('R-ST3: every claim has a lease of its own, and counts as an attempt', async () => {
    const { taskId } = await submitOne(db());
    const first = await claimOne(db(), taskId);
    await endAttempts(db(), [backToPending(first)], null);
    await db().query(
      `update sluice.tasks set status = 'queued', waits_for = null, queued_at = now()`,
    );
    const second = await claimOne(db(), taskId);
    expect(second.lease).not.toBe(first.lease);
    expect(second).toMatchObject({ attempt: 2, retryCount: 1 });
  });

  it('the same task twice in one batch is given once', async () => {
    const { taskId } = await submitOne(db());
    const claimed = await claimTasks(db(), [claimOf(taskId), claimOf(taskId)], 0, 30_000, null);
    expect(claimed).toHaveLength(1);
  });
});

describeOnPostgres('claimTasks', (postgres) => {
  it('R-ST1: two servers that claim the same tasks at once never get one twice', async () => {
    const pools = [postgres().db, await postgres().open()];
    const tasks = newTasks(2_000);
    await submitTasks(postgres().db, tasks, null);
    const given: TaskId[] = [];
    await Promise.all(
      pools.flatMap((db, n) =>
        [0, 1].map(async () => {
          const order = n === 0 ? tasks : tasks.toReversed();
          for (let at = 0; at < order.length; at += 100) {
            const claims = order.slice(at, at + 100).map((task) => claimOf(task.taskId));
            const rows = await claimTasks(db, claims, 0, 30_000, null);
            given.push(...rows.map((row) => row.taskId));
          }
        }),
      ),
    );
    expect(given).toHaveLength(new Set(given).size);
    // What both wanted in the same moment, one of them may have been refused while it was locked.
    const left = tasks.filter((task) => !given.includes(task.taskId));
    const rest = await claimTasks(
      postgres().db,
      left.map((task) => claimOf(task.taskId)),
      0,
      30_000,
      null,
    );
    expect(given.length + rest.length).toBe(tasks.length);
  });

  it('R-CH9: a locked row is skipped, and delays nobody', async () => {
    const { db } = postgres();
    const [locked, free] = newTasks(2);
    if (locked === undefined || free === undefined) throw new Error('no tasks');
    await submitTasks(db, [locked, free], null);
    await db.transaction(async (tx) => {
      await tx.query('select from sluice.tasks where id = $1 for update', [locked.taskId]);
      const claims = [claimOf(locked.taskId), claimOf(free.taskId)];
      const claimed = await claimTasks(db, claims, 0, 30_000, null);
      expect(claimed.map((row) => row.taskId)).toEqual([free.taskId]);
    });
    expect(await rowOf(db, locked.taskId)).toMatchObject({ status: 'queued', attempt: 0 });
  });
});
