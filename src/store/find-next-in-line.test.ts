import { expect, it } from 'vitest';
import { newTask, newTasks } from '../../test/store/lifecycle.js';
import { atSecond, zero } from '../../test/store/seed.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import { findLanes } from './find-lanes.js';
import { findNextInLine } from './find-next-in-line.js';
import { submitTasks } from './submit-tasks.js';

describeOnEveryDatabase('the next in line', (db) => {
  it('R-AD6: of all lanes and priorities, the most urgent and oldest first, with cost and deadline', async () => {
    await submitTasks(db(), newTasks(3, { queue: 'a', costJson: '{"tokens":7}' }), zero);
    const urgent = { queue: 'a', taskType: 'train', priority: 'high' } as const;
    await submitTasks(db(), [newTask({ ...urgent, dispatchDeadlineSeconds: 60 })], atSecond(5));
    await submitTasks(
      db(),
      [newTask({ queue: 'b' }), newTask({ queue: 'a', delaySeconds: 9 })],
      zero,
    );
    const found = await findNextInLine(db(), 'a', 10, atSecond(20));
    expect(
      found.map(({ priority, cost, ageMs, expiresInMs }) => [priority, cost, ageMs, expiresInMs]),
    ).toEqual([
      ['high', {}, 15_000, 45_000],
      ...[1, 2, 3].map(() => ['medium', { tokens: 7 }, 20_000, null]),
    ]);
    expect(await findNextInLine(db(), 'a', 2, atSecond(20))).toEqual(found.slice(0, 2));
    expect(await findNextInLine(db(), 'none', 2, zero)).toEqual([]);
  });

  it('R-OB1: the lanes of some queues, so many of each', async () => {
    const gpu = newTask({ queue: 'a', capabilities: ['gpu'] });
    await submitTasks(db(), [...newTasks(2, { queue: 'a' }), gpu, newTask({ queue: 'b' })], zero);
    const lanes = await findLanes(db(), ['a', 'b', 'c'], 20);
    expect(
      lanes.toSorted((a, b) =>
        a.queue < b.queue ? -1 : a.capabilities.length - b.capabilities.length,
      ),
    ).toEqual([
      { queue: 'a', taskType: 'chat', capabilities: [] },
      { queue: 'a', taskType: 'chat', capabilities: ['gpu'] },
      { queue: 'b', taskType: 'chat', capabilities: [] },
    ]);
    expect(await findLanes(db(), ['a'], 1)).toHaveLength(1);
  });
});
