import { expect, it } from 'vitest';

import { newTask } from '../../test/store/lifecycle.js';
import { seedTask, zero } from '../../test/store/seed.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import { cancelTasks } from './cancel-tasks.js';
import { lockWorkflows } from './release-heads.js';
import { purgeWorkflows } from './purge-workflows.js';
import { findWaitsFor } from './read-tasks.js';
import { submitTasks } from './submit-tasks.js';

describeOnEveryDatabase('purgeWorkflows', (db) => {
  it('R-ST6: rows of workflows without a member in line go, lap by lap', async () => {
    await seedTask(db(), { workflowId: 'b living' });
    await seedTask(db(), { workflowId: 'd halted', status: 'dead_letter' });
    await seedTask(db(), { workflowId: 'e over', status: 'dead_letter', haltsWorkflow: false });
    await db().query(`insert into sluice.workflows (id) values ('a over'), ('c over')`);
    expect(await purgeWorkflows(db(), null, 3)).toEqual({ purged: 2, next: 'c over' });
    expect(await purgeWorkflows(db(), 'c over', 3)).toEqual({ purged: 1, next: null });
    expect(await purgeWorkflows(db(), null, 3)).toEqual({ purged: 0, next: null });
    const left = await db().query('select id from sluice.workflows order by id');
    expect(left).toEqual([{ id: 'b living' }, { id: 'd halted' }]);
  });

  it('a place that is kept for a cancelled member stays', async () => {
    const { taskId } = await seedTask(db(), { workflowId: 'w', status: 'executing' });
    await cancelTasks(db(), [taskId], zero);
    expect(await purgeWorkflows(db(), null, 10)).toMatchObject({ purged: 0 });
  });
});

describeOnPostgres('purgeWorkflows', (postgres) => {
  it('R-ST6: does not disturb a submit that has the row, nor wait for it', async () => {
    const { db } = postgres();
    await db.query(`insert into sluice.workflows (id) values ('w')`);
    await db.transaction(async (tx) => {
      await lockWorkflows(tx, ['w']);
      expect(await purgeWorkflows(db, null, 10)).toMatchObject({ purged: 0 });
    });
    expect(await purgeWorkflows(db, null, 10)).toMatchObject({ purged: 1 });
  });

  it('R-ST6: submits and purges at once leave nobody blocked', async () => {
    const db = await postgres().openPatient();
    const other = await postgres().openPatient();
    for (let round = 0; round < 30; round += 1) {
      const task = newTask({ workflowId: 'w' });
      await Promise.all([submitTasks(db, [task], null), purgeWorkflows(other, null, 10)]);
      expect(await findWaitsFor(db, task.taskId)).toBe('time');
      await Promise.all([cancelTasks(db, [task.taskId], null), purgeWorkflows(other, null, 10)]);
    }
  });
});
