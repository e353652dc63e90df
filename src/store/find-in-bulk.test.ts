import { expect, it } from 'vitest';

import { atSecond, seedTask, zero } from '../../test/store/seed.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import type { TaskFilter } from '../protocol/tasks-api.js';
import { cancelTasks } from './cancel-tasks.js';
import { findCancellable, findReplayable, findWaiting } from './find-in-bulk.js';

describeOnEveryDatabase('findCancellable', (db) => {
  it('finds by every filter, newest first, and only what has not ended', async () => {
    const wanted = { queue: 'q', taskType: 't', userId: 'u', workflowId: 'w', tags: ['x'] };
    const first = await seedTask(db(), { ...wanted, status: 'executing' });
    const second = await seedTask(db(), { ...wanted, status: 'pending', waitsFor: 'workflow' });
    await seedTask(db(), { ...wanted, status: 'dead_letter' });
    await seedTask(db());

    for (const filter of [
      { queue: 'q' },
      { taskType: 't' },
      { userId: 'u' },
      { workflowId: 'w' },
      { tag: 'x' },
    ]) {
      expect(await findCancellable(db(), filter, 10, null)).toEqual({
        taskIds: [second.taskId, first.taskId],
        next: null,
      });
    }
    const { taskIds } = await findCancellable(db(), { queue: 'q', status: 'executing' }, 10, null);
    expect(taskIds).toEqual([first.taskId]);
  });

  it('finds the dead letters that halt a workflow when asked for by status', async () => {
    await seedTask(db(), { status: 'dead_letter' });
    const halting = await seedTask(db(), { status: 'dead_letter', workflowId: 'w' });
    const { taskIds } = await findCancellable(db(), { status: 'dead_letter' }, 10, null);
    expect(taskIds).toEqual([halting.taskId]);
  });

  it('goes on where it stopped', async () => {
    const seeds = [await seedTask(db()), await seedTask(db()), await seedTask(db())];
    const newestFirst = seeds.map((seed) => seed.taskId).reverse();
    const page = await findCancellable(db(), { queue: 'default' }, 2, null);
    expect(page).toEqual({ taskIds: newestFirst.slice(0, 2), next: newestFirst[1] });
    const rest = await findCancellable(db(), { queue: 'default' }, 2, page.next);
    expect(rest).toEqual({ taskIds: newestFirst.slice(2), next: null });
  });

  it('of a workflow finds its members alone, the last in its line first', async () => {
    const workflowId = 'w';
    const halting = await seedTask(db(), { status: 'dead_letter', workflowId });
    const behind = { status: 'pending', waitsFor: 'workflow', workflowId } as const;
    const seeds = [await seedTask(db(), { ...behind, tags: ['t'] }), await seedTask(db(), behind)];
    await seedTask(db(), { status: 'dead_letter', workflowId, haltsWorkflow: false });
    await seedTask(db(), { ...behind, workflowId: 'x' });
    const [first, second] = seeds.map((seed) => seed.taskId);
    const page = await findCancellable(db(), { workflowId }, 1, null);
    expect(page.taskIds).toEqual([second]);
    const rest = await findCancellable(db(), { workflowId }, 10, page.next);
    expect(rest).toEqual({ taskIds: [first], next: null });
    const tagged = await findCancellable(db(), { workflowId, tag: 't' }, 10, null);
    expect(tagged.taskIds).toEqual([first]);
    const ended = await findCancellable(db(), { workflowId, status: 'dead_letter' }, 10, null);
    expect(ended.taskIds).toEqual([halting.taskId]);
  });
});

describeOnEveryDatabase('findReplayable', (db) => {
  const found = async (filter: TaskFilter, limit = 10) =>
    (await findReplayable(db(), filter, limit, null)).taskIds;

  it('finds dead letters and failed tasks, oldest first; cancelled ones only when asked for', async () => {
    const dead = await seedTask(db(), { status: 'dead_letter', queue: 'q', tags: ['x'] });
    const failed = await seedTask(db(), { status: 'failed', queue: 'q' });
    const cancelled = await seedTask(db(), { queue: 'q' });
    await seedTask(db(), { queue: 'q' });
    await seedTask(db(), { status: 'dead_letter' });
    await cancelTasks(db(), [cancelled.taskId], zero);

    expect(await found({ queue: 'q' })).toEqual([dead.taskId, failed.taskId]);
    expect(await found({ queue: 'q', status: 'failed' })).toEqual([failed.taskId]);
    expect(await found({ queue: 'q', status: 'cancelled' })).toEqual([cancelled.taskId]);
    expect(await found({ tag: 'x' })).toEqual([dead.taskId]);
    expect(await found({ queue: 'q', status: 'queued' })).toEqual([]);
    expect(await found({ status: 'completed' })).toEqual([]);
  });

  it('goes on where it stopped', async () => {
    const seeds = [];
    for (let n = 0; n < 3; n += 1) seeds.push(await seedTask(db(), { status: 'dead_letter' }));
    const oldestFirst = seeds.map(({ taskId }) => taskId);
    const first = await findReplayable(db(), { queue: 'default' }, 2, null);
    expect(first).toEqual({ taskIds: oldestFirst.slice(0, 2), next: oldestFirst[1] });
    const rest = await findReplayable(db(), { queue: 'default' }, 2, first.next);
    expect(rest).toEqual({ taskIds: oldestFirst.slice(2), next: null });
  });
});

describeOnEveryDatabase('findWaiting', (db) => {
  const found = async (filter: TaskFilter) =>
    (await findWaiting(db(), filter, 10, { after: null, priority: 'high' })).taskIds;

  it('finds what has not started and has another priority, oldest first', async () => {
    const queued = await seedTask(db(), { priority: 'low' });
    const delayed = await seedTask(db(), { status: 'pending', runAt: atSecond(60) });
    await seedTask(db(), { priority: 'high' });
    await seedTask(db(), { status: 'executing' });
    await seedTask(db(), { status: 'dead_letter' });
    expect(await found({ queue: 'default' })).toEqual([queued.taskId, delayed.taskId]);
    expect(await found({ status: 'pending' })).toEqual([delayed.taskId]);
    expect(await found({ status: 'executing' })).toEqual([]);
    expect(await found({ queue: 'elsewhere' })).toEqual([]);
  });

  it('R-AD6: finds for a confined key only what it reaches', async () => {
    const own = await seedTask(db(), { queue: 'mine-1' });
    await seedTask(db(), { queue: 'others' });
    const within = { queues: ['mine-*'], owner: null };
    expect(await found({ status: 'queued', within })).toEqual([own.taskId]);
  });
});
