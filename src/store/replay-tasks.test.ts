import { expect, it } from 'vitest';

import { atSecond, seedTask, zero } from '../../test/store/seed.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import { cancelTasks } from './cancel-tasks.js';
import { findStates, findTask, findWaitsFor } from './read-tasks.js';
import { replayTasks } from './replay-tasks.js';

describeOnEveryDatabase('replayTasks', (db) => {
  it.each(['dead_letter', 'failed'] as const)('R-RE5: brings a %s task back', async (status) => {
    const { taskId } = await seedTask(db(), { status, deadlineSeconds: 60, attempt: 4 });
    const rows = await replayTasks(db(), [taskId], { newPriority: 'high' }, atSecond(30));
    const lane = { queue: 'default', taskType: 'chat', capabilities: [] };
    const window = { lane, priority: 'high' };
    expect(rows).toEqual([{ taskId, window, from: status, trace: null }]);
    expect(await findTask(db(), taskId, true, atSecond(40))).toMatchObject({
      status: 'pending',
      priority: 'high',
      parameters: { n: 1 },
      error: null,
      completedAt: null,
      retryCount: 0,
      attempt: 4,
      eligibleAt: atSecond(30),
      dispatchDeadline: atSecond(90),
      currentStateDurationSeconds: 10,
      history: {
        states: [
          { state: 'pending', at: zero },
          { state: status, at: zero },
          { state: 'pending', at: atSecond(30), reason: 'replayed' },
        ],
        attempts: [],
      },
    });
    expect(await findWaitsFor(db(), taskId)).toBe('time');
  });

  it('brings a cancelled task back from history, with its parameters', async () => {
    const parameters = { prompt: 'nul \u0000 and half a pair \ud800', deep: { b: 1, a: [null] } };
    const { taskId, workerId } = await seedTask(db(), { status: 'executing', parameters });
    await cancelTasks(db(), [taskId], atSecond(1));
    const [row] = await replayTasks(db(), [taskId], {}, atSecond(2));
    expect(row).toMatchObject({ taskId, from: 'cancelled', window: { priority: 'medium' } });
    expect(await findTask(db(), taskId, true, atSecond(3))).toMatchObject({
      status: 'pending',
      parameters,
      eligibleAt: atSecond(2),
      history: {
        states: [
          { state: 'queued', at: zero },
          { state: 'executing', at: zero, workerId, attempt: 1 },
          { state: 'cancelled', at: atSecond(1) },
          { state: 'pending', at: atSecond(2), reason: 'replayed' },
        ],
        attempts: [{ attempt: 1, outcome: 'cancelled' }],
      },
    });
    expect(await db().query('select from sluice.task_history')).toEqual([]);
  });

  it('R-RE5: may be spread over time, which is written with the replay', async () => {
    const first = await seedTask(db(), { status: 'dead_letter' });
    const second = await seedTask(db(), { status: 'dead_letter' });
    const taskIds = [second.taskId, first.taskId];
    await replayTasks(db(), taskIds, {}, atSecond(30), [atSecond(30), atSecond(31)]);
    expect(await findWaitsFor(db(), second.taskId)).toBe('time');
    expect(await findWaitsFor(db(), first.taskId)).toBe('time');
    expect(await findTask(db(), first.taskId, false, atSecond(30))).toMatchObject({
      runAt: atSecond(31),
      eligibleAt: atSecond(31),
    });
  });

  it('a member that is spread waits for its turn, and then for its time', async () => {
    const workflowId = 'w';
    const { taskId } = await seedTask(db(), { status: 'dead_letter', workflowId });
    const next = await seedTask(db(), { status: 'pending', waitsFor: 'workflow', workflowId });
    await replayTasks(db(), [taskId], {}, atSecond(30), [atSecond(40)]);
    expect(await findWaitsFor(db(), taskId)).toBe('time');
    expect(await findWaitsFor(db(), next.taskId)).toBe('workflow');
  });

  it('keeps the retries spent when asked to', async () => {
    const { taskId } = await seedTask(db(), { status: 'dead_letter', returns: 2 });
    await db().query('update sluice.tasks set retry_count = 3');
    await replayTasks(db(), [taskId], { resetRetryCount: false }, zero);
    expect(await findTask(db(), taskId, false, zero)).toMatchObject({ retryCount: 3 });
  });

  it('never brings back a completed task, nor one that has not ended', async () => {
    const { taskId } = await seedTask(db());
    await cancelTasks(db(), [taskId], zero);
    await db().query(`update sluice.task_history set status = 'completed'`);
    const living = await seedTask(db(), { status: 'executing' });
    expect(await replayTasks(db(), [taskId, living.taskId], {}, zero)).toEqual([]);
    const states = await findStates(db(), [taskId, living.taskId]);
    expect([...states.values()].sort()).toEqual(['completed', 'executing']);
  });

  it('does not bring back a task whose parameters are no longer kept', async () => {
    const { taskId } = await seedTask(db());
    await cancelTasks(db(), [taskId], zero);
    await db().query('delete from sluice.task_inputs');
    expect(await replayTasks(db(), [taskId], {}, zero)).toEqual([]);
  });
});

describeOnPostgres('replayTasks at once', (postgres) => {
  it('brings a task back once', async () => {
    const db = await postgres().openPatient();
    const other = await postgres().openPatient();
    const { taskId } = await seedTask(db);
    await cancelTasks(db, [taskId], zero);
    const both = await Promise.all(
      [db, other].map((connection) => replayTasks(connection, [taskId], {}, zero)),
    );
    expect(both.flat()).toHaveLength(1);
  });
});
