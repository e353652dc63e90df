import { describe, expect, it } from 'vitest';

import { atSecond, seedBulk, seedTask, zero } from '../../test/store/seed.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import type { TaskId } from '../domain/ids.js';
import type { Page } from '../protocol/page.js';
import type { ListedTask, TaskFilter } from '../protocol/tasks-api.js';
import { cancelTasks } from './cancel-tasks.js';
import { listTasks } from './list-tasks.js';
import { decodeIdCursor, encodeCursor } from './paging.js';
import { maxScannedRows } from './task-walk.js';

describeOnEveryDatabase('listTasks', (db) => {
  it('lists the living and history together, newest first', async () => {
    const taskIds = await seedMany(5);
    await cancelTasks(db(), [at(taskIds, 1), at(taskIds, 3)], zero);
    const page = await listTasks(db(), {}, { limit: 10 }, atSecond(1));
    expect(idsOf(page)).toEqual([...taskIds].reverse());
    expect(page.items.map((task) => task.status)).toEqual([
      'queued',
      'cancelled',
      'queued',
      'cancelled',
      'queued',
    ]);
    expect(page.nextCursor).toBeNull();
    expect(page.items[0]).toMatchObject({ currentStateDurationSeconds: 1 });
    expect(page.items[0]).not.toHaveProperty('parameters');
  });

  it('pages without a duplicate or a gap while tasks end in between', async () => {
    const taskIds = await seedMany(23);
    const seen: TaskId[] = [];
    let cursor: string | undefined;
    for (let round = 0; round < 20; round += 1) {
      const page = await listTasks(db(), {}, { limit: 3, ...(cursor && { cursor }) }, zero);
      seen.push(...idsOf(page));
      await cancelTasks(db(), [at(taskIds, 22 - round), at(taskIds, round)], zero);
      if (page.nextCursor === null) break;
      cursor = page.nextCursor;
    }
    expect(seen).toEqual([...taskIds].reverse());
  });

  it('an empty store is an empty page', async () => {
    const page = await listTasks(db(), { status: 'queued' }, {}, zero);
    expect(page).toEqual({ items: [], nextCursor: null, searchedBackTo: null });
  });

  it('finds by every filter, among the living and in history', async () => {
    const wanted = { queue: 'q', taskType: 't', userId: 'u', tags: ['a', 'b'], workflowId: 'w' };
    await seedTask(db());
    const living = await seedTask(db(), { ...wanted, status: 'executing' });
    await seedTask(db());
    const ended = await seedTask(db(), {
      ...wanted,
      status: 'pending',
      waitsFor: 'workflow',
    });
    await cancelTasks(db(), [ended.taskId], zero);
    const filters: TaskFilter[] = [
      { queue: 'q' },
      { taskType: 't' },
      { userId: 'u' },
      { tag: 'b' },
      { workflowId: 'w' },
      { queue: 'q', tag: 'a', userId: 'u' },
    ];
    for (const filter of filters) {
      expect(await found(filter)).toEqual([ended.taskId, living.taskId]);
    }
    expect(await found({ queue: 'q', status: 'cancelled' })).toEqual([ended.taskId]);
    expect(await found({ queue: 'q', status: 'completed' })).toEqual([]);
    expect(await found({ queue: 'nowhere' })).toEqual([]);
  });

  it('finds by every status', async () => {
    const states = ['pending', 'queued', 'assigned', 'executing', 'dead_letter', 'failed'] as const;
    for (const status of states) {
      const { taskId } = await seedTask(db(), { status });
      expect(await found({ status })).toEqual([taskId]);
    }
    const { taskId } = await seedTask(db());
    await cancelTasks(db(), [taskId], zero);
    expect(await found({ status: 'cancelled' })).toEqual([taskId]);
    await db().query(`update sluice.task_history set status = 'completed'`);
    expect(await found({ status: 'completed' })).toEqual([taskId]);
    expect(await found({ status: 'cancelled' })).toEqual([]);
  });

  it('reads a bounded number of rows, answers what it found, and goes on from there', async () => {
    const needle = await seedTask(db(), { queue: 'rare' });
    await seedBulk(db(), maxScannedRows);
    const first = await listTasks(db(), { queue: 'rare' }, { limit: 5 }, zero);
    expect(first.items).toEqual([]);
    expect(first.searchedBackTo).toBeInstanceOf(Date);
    const cursor = first.nextCursor;
    if (cursor === null) throw new Error('there is more to read');
    const second = await listTasks(db(), { queue: 'rare' }, { limit: 5, cursor }, zero);
    expect(idsOf(second)).toEqual([needle.taskId]);
    expect([second.nextCursor, second.searchedBackTo]).toEqual([null, null]);
  });

  it('does not answer past the point where the other table was read to', async () => {
    const early = await seedTask(db(), { queue: 'rare' });
    const earlyEnded = await seedTask(db(), { queue: 'rare' });
    await cancelTasks(db(), [earlyEnded.taskId], zero);
    await seedBulk(db(), maxScannedRows);
    // History holds one row and is read to its end; the living are not, and hold an older match.
    const first = await listTasks(db(), { queue: 'rare' }, { limit: 5 }, zero);
    expect(first.items).toEqual([]);
    const cursor = first.nextCursor ?? '';
    const second = await listTasks(db(), { queue: 'rare' }, { limit: 5, cursor }, zero);
    expect(idsOf(second)).toEqual([earlyEnded.taskId, early.taskId]);
  });

  async function seedMany(count: number): Promise<TaskId[]> {
    const taskIds: TaskId[] = [];
    for (let n = 0; n < count; n += 1) taskIds.push((await seedTask(db())).taskId);
    return taskIds;
  }

  async function found(filter: TaskFilter): Promise<TaskId[]> {
    return idsOf(await listTasks(db(), filter, {}, zero));
  }
});

describe('a cursor', () => {
  it.each(['', 'x', '=', 'AAAA', '!!', encodeCursor('not-an-id'), `${encodeCursor('a')}=`])(
    'that is not ours is refused: %j',
    (cursor) => {
      expect(() => decodeIdCursor(cursor)).toThrow(
        expect.objectContaining({
          code: 'invalid_request',
          errors: [{ path: 'cursor', message: expect.any(String) as string }],
        }),
      );
    },
  );
});

function idsOf(page: Page<ListedTask>): TaskId[] {
  return page.items.map((task) => task.taskId);
}

function at(taskIds: readonly TaskId[], index: number): TaskId {
  const taskId = taskIds[index];
  if (taskId === undefined) throw new RangeError(`no task ${String(index)}`);
  return taskId;
}
