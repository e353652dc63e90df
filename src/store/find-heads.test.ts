import { expect, it } from 'vitest';

import { newTask, newTasks, submitOne } from '../../test/store/lifecycle.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import { findHeads } from './find-heads.js';
import { submitTasks } from './submit-tasks.js';

const now = new Date();

describeOnEveryDatabase('findHeads', (db) => {
  it('R-OB5: tells the first queued task of each window of the queue, and of no other', async () => {
    const later = new Date(now.getTime() + 500);
    const young = await submitOne(db(), { queue: 'a' }, later);
    const old = await submitOne(db(), { queue: 'a', costJson: '{"t":1}' }, now);
    const high = await submitOne(db(), { queue: 'a', priority: 'high' }, later);
    const gpu = await submitOne(db(), { queue: 'a', capabilities: ['gpu'], taskType: 'z' }, now);
    await submitTasks(
      db(),
      [
        ...newTasks(2, { queue: 'a', isOffered: false, taskType: 'unoffered' }),
        newTask({ queue: 'a', delaySeconds: 60, taskType: 'later' }),
        ...newTasks(2, { queue: 'b' }),
      ],
      now,
    );
    const heads = await findHeads(db(), 'a', 100, new Date(now.getTime() + 1_500));
    const ids = heads.map(({ taskId }) => taskId);
    expect(ids.toSorted()).toEqual([old.taskId, high.taskId, gpu.taskId].toSorted());
    expect(ids).not.toContain(young.taskId);
    expect(heads.find(({ taskId }) => taskId === old.taskId)).toMatchObject({
      lane: { queue: 'a', taskType: 'chat', capabilities: [] },
      priority: 'medium',
      ageMs: 1_500,
      cost: { t: 1 },
    });
    expect(await findHeads(db(), 'a', 2, now)).toHaveLength(2);
    expect(await findHeads(db(), 'nobody', 100, now)).toEqual([]);
  });
});
