import { expect, it } from 'vitest';

import { atSecond, seedTask, zero } from '../../test/store/seed.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import type { TaskId } from '../domain/ids.js';
import type { Database, Queryable } from './database.js';
import { findPurgeable, giveUpWorkflow, purgeEnded, type HaltingRow } from './purge-ended.js';
import { findTask, findWaitsFor } from './read-tasks.js';
import { replayTasks } from './replay-tasks.js';
import { submitTasks } from './submit-tasks.js';
import { newTask } from '../../test/store/lifecycle.js';

const kept = { failed: 7, deadLetter: 30 };

function daysAgo(days: number): Date {
  return atSecond(-days * 86_400);
}

/** A workflow that was halted so many days ago, with two members behind. */
async function haltedWorkflow(
  db: Queryable,
  workflowId: string,
  days: number,
): Promise<{ first: TaskId; behind: TaskId[] }> {
  const member = { status: 'pending', waitsFor: 'workflow', workflowId } as const;
  const ended = { status: 'dead_letter', endedAt: daysAgo(days), workflowId } as const;
  const { taskId: first } = await seedTask(db, ended);
  const second = await seedTask(db, member);
  const third = await seedTask(db, member);
  return { first, behind: [second.taskId, third.taskId] };
}

async function findHalting(db: Database): Promise<HaltingRow> {
  const { halting } = await findPurgeable(db, kept, 100, zero);
  if (halting[0] === undefined) throw new Error('nothing halts a workflow for that long');
  return halting[0];
}

describeOnEveryDatabase('purgeEnded', (db) => {
  it('R-ST6: dead letters go after their days, failed tasks after those of all ended', async () => {
    const old = await seedTask(db(), { status: 'dead_letter', endedAt: daysAgo(30) });
    await seedTask(db(), { status: 'dead_letter', endedAt: daysAgo(29.9) });
    const failed = await seedTask(db(), { status: 'failed', endedAt: daysAgo(7) });
    await seedTask(db(), { status: 'failed', endedAt: daysAgo(6.9) });
    await seedTask(db(), { status: 'queued', eligibleAt: daysAgo(100) });
    const found = await findPurgeable(db(), kept, 10, zero);
    expect(found).toEqual({ ordinary: [old.taskId, failed.taskId], halting: [] });
    expect(await purgeEnded(db(), found.ordinary, kept, zero)).toBe(2);
    expect(await findPurgeable(db(), kept, 10, zero)).toEqual({ ordinary: [], halting: [] });
    expect(await findTask(db(), old.taskId, false, zero)).toBeNull();
    expect(await db().query('select from sluice.tasks')).toHaveLength(3);
  });

  it('is bounded, the longest ended first', async () => {
    await seedTask(db(), { status: 'failed', endedAt: daysAgo(40) });
    const oldest = await seedTask(db(), { status: 'dead_letter', endedAt: daysAgo(50) });
    const found = await findPurgeable(db(), kept, 1, zero);
    expect(found.ordinary).toEqual([oldest.taskId]);
  });

  it('leaves alone what was replayed after it was found', async () => {
    const { taskId } = await seedTask(db(), { status: 'dead_letter', endedAt: daysAgo(31) });
    await replayTasks(db(), [taskId], {}, zero);
    expect(await purgeEnded(db(), [taskId], kept, zero)).toBe(0);
  });

  it('R-ST6: those behind a purged one are cancelled, with the reason', async () => {
    const { first, behind } = await haltedWorkflow(db(), 'w', 31);
    const given = await giveUpWorkflow(db(), await findHalting(db()), kept, 10, zero);
    expect(given.purged).toBe(1);
    expect(given.cancelled.map((row) => row.taskId).sort()).toEqual([...behind].sort());
    expect(given.why).toContain(first);
    const [second] = behind;
    if (second === undefined) throw new Error('somebody was behind');
    expect(await findTask(db(), second, true, zero)).toMatchObject({
      status: 'cancelled',
      error: { code: 'workflow_given_up', message: given.why },
      history: { states: [{ state: 'pending' }, { state: 'cancelled', reason: given.why }] },
    });
    expect(await db().query('select from sluice.tasks')).toEqual([]);
  });

  it('a long workflow is given up in steps, in which nobody runs', async () => {
    const { first } = await haltedWorkflow(db(), 'w', 31);
    const halting = await findHalting(db());
    const one = await giveUpWorkflow(db(), halting, kept, 1, zero);
    expect(one).toMatchObject({ purged: 0, cancelled: [{ from: 'pending' }] });
    expect(await findTask(db(), first, false, zero)).toMatchObject({ status: 'dead_letter' });
    const waiting = await db().query(`select from sluice.tasks where waits_for = 'workflow'`);
    expect(waiting).toHaveLength(1);
    await giveUpWorkflow(db(), halting, kept, 1, zero);
    expect(await giveUpWorkflow(db(), halting, kept, 1, zero)).toMatchObject({ purged: 1 });
    expect(await giveUpWorkflow(db(), halting, kept, 1, zero)).toMatchObject({ purged: 0 });
  });

  it('a workflow that was given up begins anew with the next submit', async () => {
    await haltedWorkflow(db(), 'w', 31);
    await giveUpWorkflow(db(), await findHalting(db()), kept, 10, zero);
    const next = newTask({ workflowId: 'w' });
    await submitTasks(db(), [next], zero);
    expect(await findWaitsFor(db(), next.taskId)).toBe('time');
  });

  it('whoever is in front of the purged one goes on', async () => {
    const workflowId = 'w';
    const front = await seedTask(db(), { status: 'executing', workflowId });
    const { behind } = await haltedWorkflow(db(), workflowId, 31);
    const given = await giveUpWorkflow(db(), await findHalting(db()), kept, 10, zero);
    expect(given.cancelled).toHaveLength(behind.length);
    expect(await findTask(db(), front.taskId, false, zero)).toMatchObject({ status: 'executing' });
  });

  it('a workflow whose member was replayed meanwhile is not given up', async () => {
    const { first, behind } = await haltedWorkflow(db(), 'w', 31);
    const halting = await findHalting(db());
    await replayTasks(db(), [first], {}, zero);
    const given = await giveUpWorkflow(db(), halting, kept, 10, zero);
    expect(given).toMatchObject({ purged: 0, cancelled: [] });
    expect(await db().query('select from sluice.tasks')).toHaveLength(1 + behind.length);
  });
});

describeOnPostgres('purgeEnded at once', (postgres) => {
  it('R-ST6: several servers purge each once, and give up each workflow once', async () => {
    const { db } = postgres();
    const servers = await Promise.all([1, 2, 3].map(() => postgres().openPatient(1)));
    for (let n = 0; n < 50; n += 1) {
      await seedTask(db, { status: 'dead_letter', endedAt: daysAgo(31) });
    }
    await haltedWorkflow(db, 'w', 31);
    const found = await findPurgeable(db, kept, 100, zero);
    const halting = await findHalting(db);
    const purged = await Promise.all(
      servers.map((server) => purgeEnded(server, found.ordinary, kept, zero)),
    );
    expect(purged.reduce((sum, count) => sum + count, 0)).toBe(50);
    const given = await Promise.all(
      servers.map((server) => giveUpWorkflow(server, halting, kept, 10, zero)),
    );
    expect(given.flatMap((one) => one.cancelled)).toHaveLength(2);
    expect(given.reduce((sum, one) => sum + one.purged, 0)).toBe(1);
  });

  it('waits for no row that somebody holds', async () => {
    const { db } = postgres();
    const { taskId } = await seedTask(db, { status: 'dead_letter', endedAt: daysAgo(31) });
    await db.transaction(async (tx) => {
      await tx.query('select from sluice.tasks where id = $1 for update', [taskId]);
      expect(await purgeEnded(db, [taskId], kept, zero)).toBe(0);
    });
    expect(await purgeEnded(db, [taskId], kept, zero)).toBe(1);
  });
});
