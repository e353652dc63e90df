import { expect, it } from 'vitest';

import {
  claimOf,
  completionOf,
  historyOf,
  newTasks,
  rowOf,
  runOne,
} from '../../test/store/lifecycle.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import { claimTasks } from './claim-tasks.js';
import { completeTasks } from './finish-tasks.js';
import { recordProgress } from './start-tasks.js';
import { submitTasks } from './submit-tasks.js';

const now = new Date();
const later = (ms: number): Date => new Date(now.getTime() + ms);

describeOnEveryDatabase('completeTasks', (db) => {
  it('moves a task to history with its result, and tells what it was', async () => {
    const held = await runOne(
      db(),
      { queue: 'gpt', costJson: '{"tokens":5}', tags: ['x'], trace: 'a trace' },
      {},
      now,
    );
    const living = await rowOf(db(), held.taskId);
    const completion = completionOf(held, {
      resultJson: '{"text":"\\u0000 and \\ud800"}',
      usageJson: '{"tokens":4}',
      executionSeconds: 1.5,
    });
    expect(await completeTasks(db(), [completion], later(2_500))).toEqual([
      {
        taskId: held.taskId,
        lease: held.lease,
        queue: 'gpt',
        taskType: 'chat',
        lane: { queue: 'gpt', taskType: 'chat', capabilities: [] },
        priority: 'medium',
        cost: { tokens: 5 },
        workerId: held.workerId,
        workflowId: null,
        attempt: 1,
        trace: 'a trace',
        from: 'executing',
        runMs: 2_500,
        released: false,
      },
    ]);
    expect(await rowOf(db(), held.taskId)).toBeUndefined();
    const { waits_for, lapses_at, expires_at, status, ended_at, error, ...rest } = living ?? {};
    const { runs_before_replay, ...kept } = rest;
    expect({ waits_for, expires_at, ended_at, error, runs_before_replay }).toEqual({
      runs_before_replay: 0,
      waits_for: null,
      expires_at: null,
      ended_at: null,
      error: null,
    });
    expect({ status, lapses_at }).toEqual({ status: 'executing', lapses_at: later(600_000) });
    expect(await historyOf(db(), held.taskId)).toEqual({
      ...kept,
      status: 'completed',
      ended_at: later(2_500),
      result: { text: '\u0000 and \ud800' },
      usage: { tokens: 4 },
      execution_seconds: 1.5,
      error: null,
    });
  });

  it('a result may come before the start', async () => {
    const held = await runOne(db(), {}, { start: false }, now);
    const [finished] = await completeTasks(db(), [completionOf(held)], later(100));
    expect(finished).toMatchObject({ from: 'assigned', runMs: 100 });
    expect(await historyOf(db(), held.taskId)).toMatchObject({ started_at: null, result: null });
  });

  it('R-RE8: of the same report twice, together or one after the other, one counts', async () => {
    const held = await runOne(db());
    const completion = completionOf(held);
    expect(await completeTasks(db(), [completion, completion], null)).toHaveLength(1);
    expect(await completeTasks(db(), [completion], null)).toEqual([]);
    const rows = await db().query('select from sluice.task_history');
    expect(rows).toHaveLength(1);
  });

  it('one lost lease in a batch does not sink the rest', async () => {
    const [good, lost, other] = [await runOne(db()), await runOne(db()), await runOne(db())];
    const stale = { ...completionOf(lost), lease: good.lease };
    const finished = await completeTasks(
      db(),
      [completionOf(good), stale, completionOf(other)],
      null,
    );
    expect(finished.map((row) => row.taskId)).toEqual([good.taskId, other.taskId]);
    expect(await rowOf(db(), lost.taskId)).toMatchObject({
      status: 'executing',
      lease: lost.lease,
    });
  });
});

describeOnPostgres('completeTasks', (postgres) => {
  it('R-WO9: a result that meets a progress report of its task is not taken for stale', async () => {
    const db = await postgres().openPatient(10);
    for (let round = 0; round < 20; round += 1) {
      const tasks = newTasks(50);
      await submitTasks(db, tasks, null);
      const claims = tasks.map((task) => claimOf(task.taskId));
      const held = await claimTasks(db, claims, 0, 30_000, null);
      const reports = held.map((item) => ({ ...item, percent: 50, message: null }));
      const [finished] = await Promise.all([
        completeTasks(
          db,
          held.map((item) => completionOf(item)),
          null,
        ),
        ...reports.map((report) => recordProgress(db, [report])),
      ]);
      expect(finished).toHaveLength(50);
    }
  });

  it('R-RE8: two servers that report the same results at once complete each task once', async () => {
    const pools = [await postgres().openPatient(), await postgres().openPatient()];
    const tasks = newTasks(500);
    await submitTasks(postgres().db, tasks, null);
    const claims = tasks.map((task) => claimOf(task.taskId));
    const held = await claimTasks(postgres().db, claims, 0, 30_000, null);
    const completions = held.map((item) => completionOf(item));
    const finished = await Promise.all(pools.map((db) => completeTasks(db, completions, null)));
    expect(finished.flat()).toHaveLength(500);
    expect(await postgres().db.query('select from sluice.task_history')).toHaveLength(500);
  });
});
