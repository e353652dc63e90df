import { expect, it } from 'vitest';

import { claimOf, submitOne } from '../../test/store/lifecycle.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import type { Circuit } from '../domain/circuit.js';
import type { TaskId } from '../domain/ids.js';
import { leaseNaming } from '../domain/lease.js';
import { defaultQueueSettings } from '../domain/queue-settings.js';
import { claimTasks } from './claim-tasks.js';
import type { Queryable } from './database.js';
import { beginGeneration, findGeneration } from './generation.js';
import { putLimit } from './limits.js';
import { changeCircuit, pauseQueue, putQueue, resumeQueue } from './queues.js';
import {
  findUnsettled,
  forgetSettled,
  haveChanged,
  settle,
  unsettledAmong,
  unsettledLimits,
} from './unsettled.js';

const limit = { unit: 'requests', rate: 10, perSeconds: 1, burst: null };

describeOnEveryDatabase('settings that the ready queue has not got', (db) => {
  it('R-HA5: claims of the queue are refused until it has them, and of older grants even then', async () => {
    const queue = 'fenced';
    const before = await submitOne(db(), { queue });
    const after = await submitOne(db(), { queue });
    const other = await submitOne(db(), { queue: 'open' });
    await settleAll(db(), 0);
    await pauseQueue(db(), queue, null);
    expect(await claimed(db(), [before.taskId, other.taskId], 7)).toEqual([other.taskId]);
    expect(await unsettledAmong(db(), [queue, 'open'])).toEqual(new Set([queue]));

    await settleAll(db(), 8);
    expect(await unsettledAmong(db(), [queue])).toEqual(new Set());
    expect(await claimed(db(), [before.taskId], 8)).toEqual([]);
    expect(await claimed(db(), [after.taskId], 9)).toEqual([after.taskId]);
    // A batch goes by its oldest grant.
    expect(await claimed(db(), [before.taskId], 9)).toEqual([before.taskId]);
  });

  it('R-HA5: every change of a queue counts, and of a limit that it shares', async () => {
    const queue = 'changing';
    await settleAll(db(), 0);
    const changes: (() => Promise<unknown>)[] = [
      () => putLimit(db(), 'account', limit),
      () => putQueue(db(), queue, { ...defaultQueueSettings, limits: [{ use: 'account' }] }, null),
      () => putLimit(db(), 'account', { ...limit, rate: 5 }),
      () => pauseQueue(db(), queue, null),
      () => resumeQueue(db(), queue),
      () => changeCircuit(db(), queue, 3, open),
    ];
    const counts: number[] = [];
    for (const change of changes) {
      await change();
      counts.push((await findUnsettled(db())).length);
      if (counts.length === 3) expect(await unsettledLimits(db())).toEqual(new Set(['account']));
      await settleAll(db(), 0);
    }
    expect(counts).toEqual([0, 1, 1, 1, 1, 1]);
    expect(await unsettledLimits(db())).toEqual(new Set());
  });

  it('R-HA5: who told of an older change, or an older generation, settles nothing', async () => {
    const queue = 'twice';
    await pauseQueue(db(), queue, null);
    const older = await findUnsettled(db());
    await resumeQueue(db(), queue);
    const generation = await findGeneration(db());
    await settle(db(), older, { generation, lastGrant: 0 });
    expect(await unsettledAmong(db(), [queue])).toEqual(new Set([queue]));

    const newest = await findUnsettled(db());
    const begun = await beginGeneration(db());
    await settle(db(), newest, { generation, lastGrant: 0 });
    expect(await unsettledAmong(db(), [queue])).toEqual(new Set([queue]));
    await settle(db(), newest, { generation: begun, lastGrant: 0 });
    expect(await unsettledAmong(db(), [queue])).toEqual(new Set());
  });

  it('is forgotten when no claim that old can come', async () => {
    await pauseQueue(db(), 'old', null);
    await pauseQueue(db(), 'recent', null);
    await settleAll(db(), 0);
    await db().query(
      `update sluice.unsettled set settled_at = now() - interval '61 s' where queue = 'old'`,
    );
    await forgetSettled(db());
    expect(await haveChanged(db(), ['old'])).toBe(false);
    expect(await haveChanged(db(), ['recent'])).toBe(true);
  });
});

const open: Circuit = {
  kind: 'open',
  reason: 'unavailable',
  trips: 1,
  slots: 1,
  untilMs: Date.now(),
  probesAtMs: Date.now(),
};

async function settleAll(db: Queryable, lastGrant: number): Promise<void> {
  await settle(db, await findUnsettled(db), { generation: await findGeneration(db), lastGrant });
}

async function claimed(db: Queryable, taskIds: TaskId[], grant: number): Promise<TaskId[]> {
  const generation = await findGeneration(db);
  const claims = taskIds.map((taskId, index) => {
    const digits = `${index}`.padStart(14, '0') + `${grant}`;
    const lease = leaseNaming(`${generation}.${grant}`, digits);
    return claimOf(taskId, { lease });
  });
  const rows = await claimTasks(db, claims, generation, 30_000, null);
  return rows.map(({ taskId }) => taskId);
}
