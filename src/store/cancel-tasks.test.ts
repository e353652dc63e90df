import { expect, it } from 'vitest';

import { atSecond, seedTask, zero } from '../../test/store/seed.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import type { TaskId } from '../domain/ids.js';
import { cancelTasks } from './cancel-tasks.js';
import { endAttempts } from './end-attempts.js';
import { findSettled } from './find-attempts.js';
import { completeTasks } from './finish-tasks.js';
import { findStates, findTask } from './read-tasks.js';
import { recordProgress, startTasks } from './start-tasks.js';

describeOnEveryDatabase('cancelTasks', (db) => {
  it('R-ST1: cancels whatever has not ended, and says from which state', async () => {
    const states = ['pending', 'queued', 'assigned', 'executing'] as const;
    const seeds = await Promise.all(states.map((status) => seedTask(db(), { status })));
    const taskIds = seeds.map((seed) => seed.taskId);

    const rows = await cancelTasks(db(), taskIds, atSecond(5));

    const from = new Map(rows.map((row) => [row.taskId, row.from]));
    expect(taskIds.map((taskId) => from.get(taskId))).toEqual(states);
    const found = await findStates(db(), taskIds);
    expect(taskIds.map((taskId) => found.get(taskId))).toEqual(states.map(() => 'cancelled'));
    const tasks = await Promise.all(
      taskIds.map((taskId) => findTask(db(), taskId, false, atSecond(6))),
    );
    const same = {
      status: 'cancelled',
      completedAt: atSecond(5),
      parameters: { n: 1 },
      currentStateDurationSeconds: 1,
    };
    expect(tasks).toMatchObject(states.map(() => same));
  });

  it('leaves what has ended alone', async () => {
    const dead = await seedTask(db(), { status: 'dead_letter' });
    const failed = await seedTask(db(), { status: 'failed' });
    const lenient = await seedTask(db(), {
      status: 'dead_letter',
      workflowId: 'w',
      haltsWorkflow: false,
    });
    const taskIds = [dead.taskId, failed.taskId, lenient.taskId];
    expect(await cancelTasks(db(), taskIds, zero)).toEqual([]);
    expect((await findStates(db(), taskIds)).get(dead.taskId)).toBe('dead_letter');
  });

  it('cancels twice with the same end: the second finds nothing to do', async () => {
    const { taskId } = await seedTask(db());
    expect(await cancelTasks(db(), [taskId], zero)).toHaveLength(1);
    expect(await cancelTasks(db(), [taskId], zero)).toEqual([]);
    expect((await findStates(db(), [taskId])).get(taskId)).toBe('cancelled');
  });

  it('an unknown id is not an error', async () => {
    const unknown = '019b5a00-0000-7000-8000-000000000000' as TaskId;
    expect(await cancelTasks(db(), [unknown], zero)).toEqual([]);
  });

  it('R-ST3: after a cancel, no write with the lease of the running attempt changes anything', async () => {
    const held = await seedTask(db(), { status: 'executing' });
    const [row] = await cancelTasks(db(), [held.taskId], atSecond(1));
    expect(row).toMatchObject({ from: 'executing', workerId: held.workerId });

    expect(await startTasks(db(), [held], zero)).toEqual([]);
    expect(await recordProgress(db(), [{ ...held, percent: 5, message: null }])).toEqual([]);
    const completion = { ...held, resultJson: '1', usageJson: null, executionSeconds: null };
    expect(await completeTasks(db(), [completion], zero)).toEqual([]);
    const next = { kind: 'dead_letter', reason: 'no' } as const;
    const end = { ...held, outcome: 'failed', error: null, next } as const;
    expect(await endAttempts(db(), [end], zero)).toEqual([]);
    expect(await findSettled(db(), [held])).toEqual([]);

    const task = await findTask(db(), held.taskId, true, atSecond(2));
    expect(task?.status).toBe('cancelled');
    expect(task?.history?.attempts).toEqual([
      {
        attempt: 1,
        workerId: held.workerId,
        startedAt: zero,
        endedAt: atSecond(1),
        outcome: 'cancelled',
      },
    ]);
  });
});
