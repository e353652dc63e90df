import { expect, it } from 'vitest';

import { newTasks, rowOf, runOne, submitOne } from '../../test/store/lifecycle.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import { feedBacklog } from './feed-backlog.js';
import { returnToBacklog } from './return-to-backlog.js';
import { submitTasks } from './submit-tasks.js';

const lane = { queue: 'default', taskType: 'chat', capabilities: [] };

describeOnEveryDatabase('returnToBacklog', (db) => {
  it('R-CH8: what comes back is fed again before anything younger', async () => {
    const older = newTasks(2);
    const younger = newTasks(2, { hasRoom: false });
    await submitTasks(db(), older, null);
    await submitTasks(db(), younger, null);
    await returnToBacklog(
      db(),
      older.map(({ taskId }) => taskId),
    );
    const fed = await feedBacklog(db(), [{ lane, priority: 'medium', limit: 3 }], null);
    const inOrder = [...older, ...younger].map(({ taskId }) => taskId);
    expect(fed.map(({ taskId }) => taskId)).toEqual(inOrder.slice(0, 3));
  });

  it('R-ST1: only what is queued comes back', async () => {
    const running = await runOne(db());
    const queued = await submitOne(db());
    await returnToBacklog(db(), [running.taskId, queued.taskId]);
    expect(await rowOf(db(), running.taskId)).toMatchObject({ status: 'executing' });
    expect(await rowOf(db(), queued.taskId)).toMatchObject({
      status: 'pending',
      waits_for: 'room',
      queued_at: null,
    });
  });
});
