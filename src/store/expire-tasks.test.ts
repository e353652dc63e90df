import { expect, it } from 'vitest';

import { atSecond, seedTask } from '../../test/store/seed.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import { expireTasks } from './expire-tasks.js';
import { findStates, findTask, findWaitsFor } from './read-tasks.js';
import { replayTasks } from './replay-tasks.js';

describeOnEveryDatabase('expireTasks', (db) => {
  it('R-CH11: what was not taken by its dispatch deadline failed for want of capacity', async () => {
    const pending = await seedTask(db(), { status: 'pending', deadlineSeconds: 10 });
    const queued = await seedTask(db(), { status: 'queued', deadlineSeconds: 10 });
    await seedTask(db(), { status: 'queued' });
    expect(await expireTasks(db(), 100, atSecond(9.999))).toEqual([]);
    const expired = await expireTasks(db(), 100, atSecond(10));
    const from = new Map(expired.map((row) => [row.taskId, row.from]));
    expect(from).toEqual(
      new Map([
        [pending.taskId, 'pending'],
        [queued.taskId, 'queued'],
      ]),
    );
    expect(expired[0]).toMatchObject({ queue: 'default', taskType: 'chat', priority: 'medium' });
    const task = await findTask(db(), queued.taskId, true, atSecond(11));
    expect(task).toMatchObject({
      status: 'failed',
      error: { code: 'capacity', retriable: true },
      completedAt: atSecond(10),
      dispatchDeadline: atSecond(10),
    });
    expect(task?.history?.states.map((change) => change.state)).toEqual(['queued', 'failed']);
    expect(await expireTasks(db(), 100, atSecond(99))).toEqual([]);
  });

  it('is bounded, the longest overdue first', async () => {
    await seedTask(db(), { deadlineSeconds: 20 });
    const first = await seedTask(db(), { deadlineSeconds: 10 });
    const expired = await expireTasks(db(), 1, atSecond(60));
    expect(expired.map((row) => row.taskId)).toEqual([first.taskId]);
  });

  it('time spent running does not count: what is held, or has run, has met its deadline', async () => {
    const held = await seedTask(db(), { status: 'executing', deadlineSeconds: 10 });
    const retried = await seedTask(db(), { status: 'pending', deadlineSeconds: 10, attempt: 1 });
    expect(await expireTasks(db(), 100, atSecond(60))).toEqual([]);
    const states = await findStates(db(), [held.taskId, retried.taskId]);
    expect(states.get(held.taskId)).toBe('executing');
    expect(states.get(retried.taskId)).toBe('pending');
    // Met once, it is not looked at by every sweep.
    const due = await db().query(
      `select from sluice.tasks where expires_at <= $1 and status = 'pending'`,
      [atSecond(60)],
    );
    expect(due).toEqual([]);
    const task = await findTask(db(), retried.taskId, false, atSecond(60));
    expect(task?.dispatchDeadline).toEqual(atSecond(10));
  });

  it('a task that was assigned and never started has not run', async () => {
    const { taskId } = await seedTask(db(), { deadlineSeconds: 10, attempt: 2, returns: 2 });
    const expired = await expireTasks(db(), 100, atSecond(10));
    expect(expired.map((row) => row.taskId)).toEqual([taskId]);
  });

  it('R-CH11: counts anew from a replay, however often it ran before', async () => {
    const { taskId } = await seedTask(db(), {
      status: 'dead_letter',
      deadlineSeconds: 10,
      attempt: 4,
    });
    await replayTasks(db(), [taskId], {}, atSecond(100));
    expect(await expireTasks(db(), 100, atSecond(109))).toEqual([]);
    const expired = await expireTasks(db(), 100, atSecond(110));
    expect(expired.map((row) => row.taskId)).toEqual([taskId]);
  });

  it('R-CH11: what ran again after its replay has met its deadline', async () => {
    const seed = { status: 'dead_letter', deadlineSeconds: 10, attempt: 4, returns: 2 } as const;
    const { taskId } = await seedTask(db(), seed);
    await replayTasks(db(), [taskId], { resetRetryCount: false }, atSecond(100));
    await db().query('update sluice.tasks set attempt = attempt + 1');
    expect(await expireTasks(db(), 100, atSecond(200))).toEqual([]);
  });

  it('R-CH11: of a replay that is spread, counts from when each is due', async () => {
    const { taskId } = await seedTask(db(), { status: 'failed', deadlineSeconds: 10 });
    await replayTasks(db(), [taskId], {}, atSecond(100), [atSecond(150)]);
    expect(await expireTasks(db(), 100, atSecond(159))).toEqual([]);
    expect(await expireTasks(db(), 100, atSecond(160))).toHaveLength(1);
  });

  it.each([
    [false, 'time'],
    [true, 'workflow'],
  ] as const)(
    'a member that halts its workflow: %s; the next waits for %s',
    async (haltsWorkflow, waitsFor) => {
      const workflowId = 'w';
      await seedTask(db(), { status: 'queued', deadlineSeconds: 10, workflowId, haltsWorkflow });
      const next = await seedTask(db(), { status: 'pending', waitsFor: 'workflow', workflowId });
      expect(await expireTasks(db(), 100, atSecond(10))).toHaveLength(1);
      expect(await findWaitsFor(db(), next.taskId)).toBe(waitsFor);
    },
  );
});
