import { expect, it } from 'vitest';

import { claimOf, newTasks, rowOf, runOne } from '../../test/store/lifecycle.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import { claimTasks } from './claim-tasks.js';
import { recordProgress, startTasks } from './start-tasks.js';
import { submitTasks } from './submit-tasks.js';

const now = new Date();
const later = (ms: number): Date => new Date(now.getTime() + ms);

describeOnEveryDatabase('startTasks', (db) => {
  it('an assigned task executes, and its timeout counts from then', async () => {
    const held = await runOne(db(), { timeoutSeconds: 60 }, { start: false }, now);
    expect(await startTasks(db(), [held], later(5_000))).toMatchObject([
      { lease: held.lease, attempt: 1, isFirst: true },
    ]);
    expect(await rowOf(db(), held.taskId)).toMatchObject({
      status: 'executing',
      assigned_at: now,
      started_at: later(5_000),
      lapses_at: later(65_000),
    });
  });

  it('said again it counts as started, and its timeout does not begin anew', async () => {
    const held = await runOne(db(), { timeoutSeconds: 60 }, { start: true }, now);
    expect(await startTasks(db(), [held], later(5_000))).toMatchObject([{ lease: held.lease }]);
    expect(await rowOf(db(), held.taskId)).toMatchObject({
      started_at: now,
      lapses_at: later(60_000),
    });
  });
});

describeOnEveryDatabase('recordProgress', (db) => {
  it('keeps the last of several reports of a task', async () => {
    const held = await runOne(db());
    const other = await runOne(db());
    const recorded = await recordProgress(db(), [
      { ...held, percent: 10, message: 'begun' },
      { ...other, percent: 50, message: null },
      { ...held, percent: 20.5, message: 'on' },
    ]);
    expect(new Set(recorded)).toEqual(new Set([held.lease, other.lease]));
    expect(await rowOf(db(), held.taskId)).toMatchObject({
      progress_percent: 20.5,
      progress_message: 'on',
    });
    expect(await rowOf(db(), other.taskId)).toMatchObject({
      progress_percent: 50,
      progress_message: null,
    });
  });
});

describeOnPostgres('startTasks and recordProgress', (postgres) => {
  it('R-ST3: writes to one row at once don’t look like a lost lease', async () => {
    const db = await postgres().openPatient();
    const tasks = newTasks(100);
    await submitTasks(db, tasks, null);
    const claims = tasks.map((task) => claimOf(task.taskId, { start: false }));
    const held = await claimTasks(db, claims, 0, 30_000, null);
    for (let round = 0; round < 20; round += 1) {
      const reports = held.map((item) => ({ ...item, percent: round, message: null }));
      const answers = await Promise.all([
        startTasks(db, held, null),
        recordProgress(db, reports),
        startTasks(db, held.toReversed().slice(0, 1), null),
        recordProgress(db, reports.slice(0, 1)),
      ]);
      expect(answers.map((answer) => answer.length)).toEqual([100, 100, 1, 1]);
    }
  });
});
