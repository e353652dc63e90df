import { expect, it } from 'vitest';

import { newTask, newTasks, submitOne } from '../../test/store/lifecycle.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import type { NewTask } from './new-task.js';
import { submitTasks } from './submit-tasks.js';
import { endOf, findWindows, walkQueued, type QueuedCursor } from './walk-line.js';

const now = new Date();

describeOnEveryDatabase('findWindows', (db) => {
  it('R-CH8: names each window that has a line, once, page by page', async () => {
    await submitTasks(
      db(),
      [
        ...newTasks(3, { queue: 'a' }),
        newTask({ queue: 'b', delaySeconds: 60, priority: 'low' }),
        ...newTasks(2, { queue: 'c', priority: 'high' }),
        ...newTasks(2, { queue: 'c', priority: 'low' }),
        ...newTasks(2, { queue: 'c', capabilities: ['gpu'], taskType: 'z' }),
      ],
      null,
    );
    const windows = await findWindows(db(), 10, null);
    expect(windows.map(({ lane, priority }) => [lane.queue, lane.taskType, priority])).toEqual([
      ['a', 'chat', 'medium'],
      ['c', 'chat', 'high'],
      ['c', 'chat', 'low'],
      ['c', 'z', 'medium'],
    ]);
    expect(windows[3]?.lane.capabilities).toEqual(['gpu']);
    const first = await findWindows(db(), 2, null);
    expect(first).toEqual(windows.slice(0, 2));
    expect(await findWindows(db(), 10, first[1] ?? null)).toEqual(windows.slice(2));
    expect(await findWindows(db(), 10, windows[3] ?? null)).toEqual([]);
  });
});

describeOnEveryDatabase('walkQueued', (db) => {
  it('R-RE6: a lap meets every queued task once, whatever the step', async () => {
    const lanes: Partial<NewTask>[] = [
      { queue: 'a' },
      { queue: 'a', priority: 'low' },
      { queue: 'b', capabilities: ['gpu'] },
      { queue: 'c', costJson: '{"t":1}' },
    ];
    const queued: NewTask[] = [];
    for (const lane of lanes) {
      for (let n = 0; n < 3; n += 1) {
        // All of one statement share one instant; with the database's clock, to the microsecond.
        const batch = newTasks(5, lane);
        queued.push(...batch);
        await submitTasks(db(), [...batch, ...newTasks(4, { ...lane, delaySeconds: 60 })], null);
      }
    }
    await submitTasks(db(), newTasks(3, { queue: 'between', delaySeconds: 60 }), null);
    for (const step of [1, 4, 7, 1_000]) {
      const walked = await lap(step);
      expect(walked).toHaveLength(queued.length);
      expect(new Set(walked)).toEqual(new Set(queued.map((task) => task.taskId)));
    }
  });

  it('tells what an offer needs, oldest first in a window', async () => {
    const young = await submitOne(db(), {}, new Date(now.getTime() + 500));
    const old = await submitOne(db(), { costJson: '{"t":1}' }, now);
    const { rows, next } = await walkQueued(db(), null, 10, new Date(now.getTime() + 1_500));
    expect(next).toBeNull();
    expect(rows.map((row) => row.taskId)).toEqual([old.taskId, young.taskId]);
    expect(rows[0]).toEqual({
      taskId: old.taskId,
      lane: { queue: 'default', taskType: 'chat', capabilities: [] },
      priority: 'medium',
      ageMs: 1_500,
      eligibleAtMs: now.getTime(),
      seq: old.kind === 'created' ? old.seq : NaN,
      cost: { t: 1 },
    });
  });

  it('R-RE6: a lap can pass over the rest of a window, however long it is', async () => {
    const [first, ...rest] = newTasks(5, { queue: 'a' });
    const other = newTask({ queue: 'b' });
    await submitTasks(db(), [...(first ? [first] : []), ...rest, other], null);
    const { rows, next } = await walkQueued(db(), null, 1, null);
    expect(rows.map((row) => row.taskId)).toEqual([first?.taskId]);
    const after = await walkQueued(db(), next && endOf(next.window), 10, null);
    expect(after.rows.map((row) => row.taskId)).toEqual([other.taskId]);
    expect(after.next).toBeNull();
  });

  it('an empty store is a lap of one step', async () => {
    expect(await walkQueued(db(), null, 10, null)).toEqual({ rows: [], next: null });
  });

  async function lap(step: number): Promise<string[]> {
    const walked: string[] = [];
    let cursor: QueuedCursor | null = null;
    do {
      const { rows, next }: Awaited<ReturnType<typeof walkQueued>> = await walkQueued(
        db(),
        cursor,
        step,
        null,
      );
      walked.push(...rows.map((row) => row.taskId));
      cursor = next;
    } while (cursor !== null);
    return walked;
  }
});
