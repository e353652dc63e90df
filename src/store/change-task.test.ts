import { expect, it } from 'vitest';

import { atSecond, seedTask, zero } from '../../test/store/seed.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import { cancelTasks } from './cancel-tasks.js';
import { changeTask, changeTasks } from './change-task.js';
import { findTask, findWaitsFor } from './read-tasks.js';

describeOnEveryDatabase('changeTask', (db) => {
  it('changes the priority of a task in line, which goes back to pending with its age', async () => {
    const { taskId } = await seedTask(db(), { status: 'queued', priority: 'low' });
    expect(await changeTask(db(), taskId, { priority: 'high' }, atSecond(9))).toEqual({
      kind: 'changed',
      changed: {
        taskId,
        window: {
          lane: { queue: 'default', taskType: 'chat', capabilities: [] },
          priority: 'high',
        },
        wasQueued: true,
        trace: null,
      },
    });
    const task = await findTask(db(), taskId, false, atSecond(9));
    expect(task).toMatchObject({ status: 'pending', priority: 'high', eligibleAt: zero });
    expect(await findWaitsFor(db(), taskId)).toBe('time');
  });

  it.each(['pending', 'queued'] as const)('R-CH11: puts a %s task off', async (status) => {
    const { taskId } = await seedTask(db(), { status, deadlineSeconds: 60 });
    const runAt = atSecond(100);
    const answer = await changeTask(db(), taskId, { runAt }, atSecond(1));
    expect(answer).toMatchObject({
      kind: 'changed',
      changed: { wasQueued: status === 'queued' },
    });
    expect(await findWaitsFor(db(), taskId)).toBe('time');
    expect(await findTask(db(), taskId, false, atSecond(1))).toMatchObject({
      status: 'pending',
      runAt,
      eligibleAt: runAt,
      dispatchDeadline: atSecond(160),
    });
  });

  it('brings a delayed task forward; its age counts from now, not from the past', async () => {
    const { taskId } = await seedTask(db(), {
      status: 'pending',
      waitsFor: 'time',
      runAt: atSecond(500),
      eligibleAt: atSecond(500),
    });
    await changeTask(db(), taskId, { runAt: atSecond(-900) }, atSecond(7));
    expect(await findWaitsFor(db(), taskId)).toBe('time');
    const task = await findTask(db(), taskId, false, atSecond(7));
    expect(task).toMatchObject({ eligibleAt: atSecond(7) });
  });

  it('a time that has passed does not make a task younger', async () => {
    const { taskId } = await seedTask(db(), { status: 'queued' });
    await changeTask(db(), taskId, { runAt: atSecond(5) }, atSecond(7));
    expect(await findTask(db(), taskId, false, zero)).toMatchObject({ eligibleAt: zero });
  });

  it('a task that waits for its workflow goes on waiting for it', async () => {
    await seedTask(db(), { status: 'executing', workflowId: 'w' });
    const behind = { status: 'pending', waitsFor: 'workflow', workflowId: 'w' } as const;
    const { taskId } = await seedTask(db(), behind);
    await changeTask(db(), taskId, { priority: 'low', runAt: atSecond(50) }, zero);
    expect(await findWaitsFor(db(), taskId)).toBe('workflow');
  });

  it('keeps the backoff of a task when only its priority changes', async () => {
    const runAt = atSecond(30);
    const { taskId } = await seedTask(db(), { status: 'pending', waitsFor: 'time', runAt });
    await changeTask(db(), taskId, { priority: 'low' }, atSecond(1));
    expect(await findWaitsFor(db(), taskId)).toBe('time');
    const task = await findTask(db(), taskId, false, zero);
    expect(task).toMatchObject({ runAt, eligibleAt: zero, priority: 'low' });
  });

  it.each([
    ['assigned', 'started'],
    ['executing', 'started'],
    ['dead_letter', 'ended'],
    ['failed', 'ended'],
  ] as const)('refuses a task that is %s: it has %s', async (status, kind) => {
    const { taskId } = await seedTask(db(), { status });
    expect(await changeTask(db(), taskId, { priority: 'high' }, zero)).toEqual({ kind });
    expect(await findTask(db(), taskId, false, zero)).toMatchObject({ status, priority: 'medium' });
  });

  it('tells a task that is in history from one that never was', async () => {
    const { taskId } = await seedTask(db());
    await cancelTasks(db(), [taskId], zero);
    expect(await changeTask(db(), taskId, { priority: 'high' }, zero)).toEqual({ kind: 'ended' });
    await db().query('delete from sluice.task_history');
    expect(await changeTask(db(), taskId, { priority: 'high' }, zero)).toEqual({ kind: 'missing' });
  });
});

describeOnEveryDatabase('changeTasks', (db) => {
  it('changes those that have not started, with their ages and times, and leaves the others', async () => {
    const runAt = atSecond(30);
    const queued = await seedTask(db(), { priority: 'low', deadlineSeconds: 60 });
    const delayed = await seedTask(db(), { status: 'pending', runAt });
    const member = { status: 'pending', waitsFor: 'workflow', workflowId: 'w' } as const;
    await seedTask(db(), { status: 'executing', workflowId: 'w' });
    const behind = await seedTask(db(), member);
    const running = await seedTask(db(), { status: 'executing' });
    const dead = await seedTask(db(), { status: 'dead_letter' });
    const taskIds = [queued, delayed, behind, running, dead].map(({ taskId }) => taskId);

    const changed = await changeTasks(db(), taskIds, { priority: 'high' }, atSecond(9));

    expect(new Map(changed.map(({ taskId, wasQueued }) => [taskId, wasQueued]))).toEqual(
      new Map([
        [queued.taskId, true],
        [delayed.taskId, false],
        [behind.taskId, false],
      ]),
    );
    const tasks = await Promise.all(taskIds.map((id) => findTask(db(), id, false, atSecond(9))));
    expect(tasks).toMatchObject([
      { status: 'pending', priority: 'high', eligibleAt: zero, dispatchDeadline: atSecond(60) },
      { status: 'pending', priority: 'high', eligibleAt: zero, runAt },
      { status: 'pending', priority: 'high' },
      { status: 'executing', priority: 'medium' },
      { status: 'dead_letter', priority: 'medium' },
    ]);
    expect(await findWaitsFor(db(), behind.taskId)).toBe('workflow');
  });
});
