import { expect, it } from 'vitest';

import { claimOne, newTaskId, submitOne } from '../../test/store/lifecycle.js';
import { seedTask } from '../../test/store/seed.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import { cancelTasks } from './cancel-tasks.js';
import { findLeased } from './find-attempts.js';

describeOnEveryDatabase('findLeased', (db) => {
  it('R-CH6: finds those that somebody holds, with what frees their slot', async () => {
    const priced = await submitOne(db(), { queue: 'gpt', costJson: '{"tokens":5}' });
    const executing = await claimOne(db(), priced.taskId);
    const assigned = await seedTask(db(), { status: 'assigned' });
    const cancelled = await seedTask(db(), { status: 'executing' });
    await cancelTasks(db(), [cancelled.taskId], null);
    const others = await Promise.all(
      (['pending', 'queued', 'dead_letter'] as const).map((status) => seedTask(db(), { status })),
    );
    const held = [executing, assigned, cancelled, ...others].map(({ taskId }) => taskId);
    const found = await findLeased(db(), [...held, newTaskId()]);
    expect(Object.fromEntries(found)).toEqual({
      [executing.taskId]: {
        lease: executing.lease,
        queue: 'gpt',
        cost: { tokens: 5 },
        status: 'executing',
      },
      [assigned.taskId]: { lease: assigned.lease, queue: 'default', cost: {}, status: 'assigned' },
    });
    expect(await findLeased(db(), [])).toEqual(new Map());
  });
});
