import { expect, it } from 'vitest';

import {
  backToPending,
  newTask,
  newTasks,
  rowOf,
  runOne,
  submitOne,
} from '../../test/store/lifecycle.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import type { Priority } from '../domain/priority.js';
import { endAttempts } from './end-attempts.js';
import { feedBacklog, wakeDue, type WantedFromBacklog } from './feed-backlog.js';
import { submitTasks } from './submit-tasks.js';

const now = new Date();
const later = (ms: number): Date => new Date(now.getTime() + ms);

describeOnEveryDatabase('feedBacklog', (db) => {
  it('R-CH8: feeds the oldest of each window, in order, and no more than asked for', async () => {
    const old = newTasks(3, { hasRoom: false, queue: 'a' });
    const young = newTasks(3, { hasRoom: false, queue: 'a' });
    const other = newTasks(2, {
      hasRoom: false,
      queue: 'b',
      priority: 'high',
      costJson: '{"t":2}',
    });
    await submitTasks(db(), young, later(1_000));
    await submitTasks(db(), [...other, ...old], now);
    const fed = await feedBacklog(
      db(),
      [wanted('b', 'high', 9), wanted('a', 'medium', 4)],
      later(5_000),
    );
    const [first] = young;
    expect(fed.map((row) => row.taskId)).toEqual(
      [...other, ...old, ...(first ? [first] : [])].map((task) => task.taskId),
    );
    expect(fed[0]).toEqual({
      taskId: other[0]?.taskId,
      lane: { queue: 'b', taskType: 'chat', capabilities: [] },
      priority: 'high',
      ageMs: 5_000,
      eligibleAtMs: now.getTime(),
      seq: expect.any(Number) as number,
      cost: { t: 2 },
    });
    const row = first && (await rowOf(db(), first.taskId));
    expect(row).toMatchObject({ status: 'queued', waits_for: null, queued_at: later(5_000) });
  });

  it('R-CH3: a window is a lane: other types and capabilities stay where they are', async () => {
    const mine = newTask({ hasRoom: false, capabilities: ['gpu', 'x"y'] });
    await submitTasks(
      db(),
      [
        mine,
        newTask({ hasRoom: false }),
        newTask({ hasRoom: false, capabilities: ['gpu'] }),
        newTask({ hasRoom: false, capabilities: ['gpu', 'x"y'], taskType: 'other' }),
        newTask({ hasRoom: false, capabilities: ['gpu', 'x"y'], priority: 'low' }),
        newTask({ capabilities: ['gpu', 'x"y'], delaySeconds: 60 }),
      ],
      null,
    );
    const lane = { queue: 'default', taskType: 'chat', capabilities: ['gpu', 'x"y'] };
    const fed = await feedBacklog(db(), [{ lane, priority: 'medium', limit: 100 }], null);
    expect(fed.map((row) => row.taskId)).toEqual([mine.taskId]);
  });

  it('R-CH2: a retry keeps its age', async () => {
    const held = await runOne(db(), {}, {}, now);
    await endAttempts(db(), [backToPending(held)], later(1_000));
    const [fed] = await feedBacklog(db(), [wanted('default', 'medium', 1)], later(2_000));
    expect(fed).toMatchObject({ taskId: held.taskId, ageMs: 2_000 });
  });
});

describeOnEveryDatabase('wakeDue', (db) => {
  it('R-CH11: those whose time has come wait for room, the soonest first', async () => {
    const tasks = [300, 100, 200, 900].map((ms) => newTask({ runAt: later(ms) }));
    await submitTasks(db(), tasks, now);
    expect(await wakeDue(db(), 10, later(99))).toEqual({
      woken: 0,
      windows: [],
      nextDueInMs: 1,
    });
    const window = { lane: lane('default'), priority: 'medium' };
    expect(await wakeDue(db(), 2, later(500))).toEqual({
      woken: 2,
      windows: [window],
      nextDueInMs: -200,
    });
    expect(await wakeDue(db(), 2, later(500))).toMatchObject({ woken: 1, nextDueInMs: 400 });
    expect(await wakeDue(db(), 2, later(900))).toMatchObject({ woken: 1, nextDueInMs: null });
    const fed = await feedBacklog(
      db(),
      [{ lane: lane('default'), priority: 'medium', limit: 9 }],
      null,
    );
    expect(fed.map((row) => row.taskId)).toEqual([1, 2, 0, 3].map((n) => tasks[n]?.taskId));
  });

  it('names every window it woke once', async () => {
    const runAt = later(10);
    await submitTasks(
      db(),
      [
        ...newTasks(3, { runAt }),
        ...newTasks(2, { runAt, priority: 'high' }),
        ...newTasks(2, { runAt, queue: 'b', capabilities: ['gpu'] }),
      ],
      now,
    );
    const { woken, windows } = await wakeDue(db(), 100, runAt);
    expect(woken).toBe(7);
    expect(windows).toHaveLength(3);
    expect(windows).toContainEqual({
      lane: { queue: 'b', taskType: 'chat', capabilities: ['gpu'] },
      priority: 'medium',
    });
  });
});

describeOnPostgres('feedBacklog', (postgres) => {
  it('R-CH8: two feeders at once share a window and feed no task twice', async () => {
    const pools = [postgres().db, await postgres().open()];
    await submitTasks(postgres().db, newTasks(1_000, { hasRoom: false }), null);
    const fed = await Promise.all(
      pools.flatMap((db) =>
        [0, 1].map(async () => {
          const ids: string[] = [];
          for (let n = 0; n < 10; n += 1) {
            const rows = await feedBacklog(db, [wanted('default', 'medium', 50)], null);
            ids.push(...rows.map((row) => row.taskId));
          }
          return ids;
        }),
      ),
    );
    const ids = fed.flat();
    expect(ids).toHaveLength(new Set(ids).size);
    const rest = await feedBacklog(postgres().db, [wanted('default', 'medium', 1_000)], null);
    expect(ids.length + rest.length).toBe(1_000);
  });

  it('R-CH9: a locked row is passed over', async () => {
    const { db } = postgres();
    const locked = await submitOne(db, { hasRoom: false });
    const free = await submitOne(db, { hasRoom: false });
    await db.transaction(async (tx) => {
      await tx.query('select from sluice.tasks where id = $1 for update', [locked.taskId]);
      const fed = await feedBacklog(db, [wanted('default', 'medium', 10)], null);
      expect(fed.map((row) => row.taskId)).toEqual([free.taskId]);
    });
  });
});

function lane(queue: string): WantedFromBacklog['lane'] {
  return { queue, taskType: 'chat', capabilities: [] };
}

function wanted(queue: string, priority: Priority, limit: number): WantedFromBacklog {
  return { lane: lane(queue), priority, limit };
}
