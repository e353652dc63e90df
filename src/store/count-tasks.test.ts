import { expect, it } from 'vitest';

import { seedBulk, seedTask, zero } from '../../test/store/seed.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import type { BulkAction } from '../protocol/bulk-api.js';
import type { TaskFilter } from '../protocol/tasks-api.js';
import { cancelTasks } from './cancel-tasks.js';
import { countTasks } from './count-tasks.js';
import { findCancellable, findReplayable, findWaiting } from './find-in-bulk.js';
import { maxScannedRows } from './task-walk.js';

describeOnEveryDatabase('countTasks', (db) => {
  const counted = async (filter: TaskFilter, action?: BulkAction) =>
    (await countTasks(db(), filter, action)).count;

  it('R-OB4: counts what matches, among the living and in history', async () => {
    expect(await countTasks(db(), {}, undefined)).toEqual({ count: 0, scanned: 0, next: null });
    const cancelled = await seedTask(db(), { queue: 'q', userId: 'u', workflowId: 'w' });
    await cancelTasks(db(), [cancelled.taskId], zero);
    await seedTask(db(), { queue: 'q', taskType: 't', tags: ['x'] });
    await seedTask(db());
    const cases: readonly (readonly [TaskFilter, number])[] = [
      [{}, 3],
      [{ queue: 'q' }, 2],
      [{ queue: 'q', status: 'cancelled' }, 1],
      [{ status: 'queued' }, 2],
      [{ status: 'completed' }, 0],
      [{ status: 'executing' }, 0],
      [{ taskType: 't', tag: 'x' }, 1],
      [{ userId: 'u' }, 1],
      [{ workflowId: 'w' }, 1],
      [{ within: { queues: ['q*'], owner: null } }, 2],
      [{ within: { queues: null, owner: 'somebody' } }, 0],
    ];
    const found: number[] = [];
    for (const [filter] of cases) found.push(await counted(filter));
    expect(found).toEqual(cases.map(([, expected]) => expected));
    const { scanned, next } = await countTasks(db(), { queue: 'q' }, undefined);
    expect({ scanned, next }).toEqual({ scanned: 3, next: null });
  });

  it('R-OB4: the count before an action is what the action finds', async () => {
    const states = ['pending', 'queued', 'assigned', 'executing', 'dead_letter', 'failed'] as const;
    for (const status of states) {
      await seedTask(db(), { status, queue: 'q' });
      await seedTask(db(), { status, queue: 'q', workflowId: `w-${status}` });
    }
    const ended = await seedTask(db(), { queue: 'q', workflowId: 'w-cancelled' });
    await cancelTasks(db(), [ended.taskId], zero);
    const wanted = [undefined, ...states, 'cancelled', 'completed'] as const;
    for (const status of wanted) {
      const filter = { queue: 'q', ...(status === undefined ? {} : { status }) };
      const waiting = { after: null, priority: 'high' } as const;
      expect([
        status,
        await counted(filter, 'cancel'),
        await counted(filter, 'replay'),
        await counted(filter, 'reprioritise'),
      ]).toEqual([
        status,
        (await findCancellable(db(), filter, 100, null)).taskIds.length,
        (await findReplayable(db(), filter, 100, null)).taskIds.length,
        (await findWaiting(db(), filter, 100, waiting)).taskIds.length,
      ]);
    }
  });

  it('R-OB4: looks at a bounded number of tasks, says so, and counts on from there', async () => {
    const rare = await seedTask(db(), { queue: 'rare' });
    const ended = await seedTask(db(), { queue: 'rare' });
    await cancelTasks(db(), [ended.taskId], zero);
    await seedBulk(db(), maxScannedRows);
    const first = await countTasks(db(), { queue: 'rare' }, undefined);
    expect(first).toMatchObject({ count: 0, scanned: maxScannedRows });
    if (first.next === null) throw new Error('there is more to count');
    const rest = await countTasks(db(), { queue: 'rare' }, undefined, first.next);
    expect(rest).toEqual({ count: 2, scanned: 2, next: null });
    expect(await countTasks(db(), { queue: 'rare' }, 'cancel', first.next)).toEqual({
      count: 1,
      scanned: 1,
      next: null,
    });
    expect(rare.taskId < first.next).toBe(true);
  });
});
