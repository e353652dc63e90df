import { expect, it } from 'vitest';

import {
  backToPending,
  claimOne,
  completionOf,
  newKey,
  newTask,
  newTasks,
  rowOf,
  submitOne,
  toDeadLetter,
} from '../../test/store/lifecycle.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import type { TaskId } from '../domain/ids.js';
import type { ClaimedRow } from './claim-tasks.js';
import { endAttempts } from './end-attempts.js';
import { wakeDue } from './feed-line.js';
import { completeTasks } from './finish-tasks.js';
import type { NewTask } from './new-task.js';
import { lockWorkflows, releaseHeads } from './release-heads.js';
import { submitTasks } from './submit-tasks.js';

const now = new Date();
const later = (ms: number): Date => new Date(now.getTime() + ms);

describeOnEveryDatabase('a workflow', (db) => {
  it('R-WO2: the first member is due, the others for their turn', async () => {
    const tasks = [
      ...newTasks(3, { workflowId: 'w' }),
      newTask({ workflowId: 'x', delaySeconds: 5 }),
      newTask(),
    ];
    const answers = await submitTasks(db(), tasks, now);
    expect(answers).toMatchObject([
      { status: 'pending', waitsFor: 'time' },
      { status: 'pending', waitsFor: 'workflow' },
      { status: 'pending', waitsFor: 'workflow' },
      { status: 'pending', waitsFor: 'time', eligibleAtMs: later(5_000).getTime() },
      { status: 'queued', waitsFor: null },
    ]);
    expect(await submitOne(db(), { workflowId: 'w' })).toMatchObject({ waitsFor: 'workflow' });
  });

  it('R-WO2: members run one at a time, in the order of their submission', async () => {
    const tasks = newTasks(4, { workflowId: 'w' });
    await submitTasks(db(), tasks, null);
    for (const [n, task] of tasks.entries()) {
      const held = await takeOnly(task.taskId);
      const [finished] = await completeTasks(db(), [completionOf(held)], null);
      expect(finished).toMatchObject({
        taskId: task.taskId,
        workflowId: 'w',
        released: n < 3,
      });
    }
  });

  it('a released member is as old as its release, and its deadline counts from then', async () => {
    const [first, second] = [
      newTask({ workflowId: 'w' }),
      newTask({ workflowId: 'w', dispatchDeadlineSeconds: 60 }),
    ];
    await submitTasks(db(), [first, second], now);
    expect(await rowOf(db(), second.taskId)).toMatchObject({ expires_at: Infinity });
    const held = await takeOnly(first.taskId);
    await completeTasks(db(), [completionOf(held)], later(90_000));
    expect(await rowOf(db(), second.taskId)).toMatchObject({
      waits_for: 'time',
      eligible_at: later(90_000),
      expires_at: later(150_000),
    });
  });

  it('a released member that is not yet due waits for its time', async () => {
    const [first, second] = [newTask({ workflowId: 'w' }), newTask({ workflowId: 'w' })];
    await submitTasks(db(), [first, { ...second, runAt: later(60_000) }], now);
    const held = await takeOnly(first.taskId);
    const [finished] = await completeTasks(db(), [completionOf(held)], later(1_000));
    expect(finished?.released).toBe(false);
    expect(await rowOf(db(), second.taskId)).toMatchObject({
      waits_for: 'time',
      eligible_at: later(60_000),
    });
  });

  it('a member that goes back keeps its place', async () => {
    const [first, second] = newTasks(2, { workflowId: 'w' });
    if (!first || !second) throw new Error('no tasks');
    await submitTasks(db(), [first, second], null);
    const held = await takeOnly(first.taskId);
    await endAttempts(db(), [backToPending(held)], null);
    expect(await rowOf(db(), second.taskId)).toMatchObject({ waits_for: 'workflow' });
    await takeOnly(first.taskId);
  });

  it('R-WO2: a dead letter halts its workflow, or lets it go on when it was told to', async () => {
    const halting = newTasks(2, { workflowId: 'halts' });
    const passing = newTasks(2, { workflowId: 'goes on', haltsWorkflow: false });
    await submitTasks(db(), [...halting, ...passing], null);
    const held = await takeAll();
    const ended = await endAttempts(db(), held.map(toDeadLetter), null);
    expect(ended.map(({ workflowId, released }) => [workflowId, released])).toEqual([
      ['halts', false],
      ['goes on', true],
    ]);
    expect(await waitsForOf(halting)).toEqual([null, 'workflow']);
    expect(await waitsForOf(passing)).toEqual([null, 'time']);
  });

  it('plain tasks and members of several workflows end in one batch', async () => {
    const tasks = [
      ...newTasks(2, { workflowId: 'a' }),
      ...newTasks(2, { workflowId: 'b' }),
      ...newTasks(2, { isOffered: false }),
    ];
    await submitTasks(db(), tasks, null);
    const held = await takeAll();
    expect(held).toHaveLength(4);
    const finished = await completeTasks(
      db(),
      held.map((item) => completionOf(item)),
      null,
    );
    expect(new Set(finished.map((row) => row.taskId))).toEqual(
      new Set(held.map((item) => item.taskId)),
    );
    expect(await takeAll()).toHaveLength(2);
  });

  it('R-ST4: a key that is taken adds nothing to its workflow', async () => {
    const first = await submitOne(db(), { workflowId: 'w', idempotency: newKey('k') });
    const again = await submitOne(db(), { workflowId: 'w', idempotency: newKey('k') });
    expect(again).toMatchObject({ kind: 'existing', taskId: first.taskId, status: 'pending' });
    expect(await db().query('select from sluice.tasks')).toHaveLength(1);
  });

  async function takeAll(): Promise<ClaimedRow[]> {
    const fed = await wakeDue(db(), 100, null);
    return Promise.all(fed.map((row) => claimOne(db(), row.taskId)));
  }

  async function takeOnly(taskId: TaskId): Promise<ClaimedRow> {
    const [held, ...others] = await takeAll();
    expect(others).toEqual([]);
    expect(held?.taskId).toBe(taskId);
    if (held === undefined) throw new Error('nothing to take');
    return held;
  }

  async function waitsForOf(tasks: readonly NewTask[]): Promise<unknown[]> {
    const rows = await Promise.all(tasks.map((task) => rowOf(db(), task.taskId)));
    return rows.map((row) => row?.waits_for);
  }
});

describeOnPostgres('a workflow', (postgres) => {
  it('R-WO2: a submit that meets a finish never leaves a member without a predecessor', async () => {
    const pools = await Promise.all([1, 2, 3].map(() => postgres().openPatient()));
    for (let round = 0; round < 300; round += 1) {
      const workflowId = `w${round}`;
      const first = await submitOne(postgres().db, { workflowId });
      await wakeDue(postgres().db, 1, null);
      const held = await claimOne(postgres().db, first.taskId);
      const end = round % 3 === 0 ? toDeadLetter(held) : completionOf(held);
      await Promise.all(
        pools.map(async (db, n) => {
          if (n > 0) await submitOne(db, { workflowId, haltsWorkflow: false });
          else if ('next' in end) await endAttempts(db, [end], null);
          else await completeTasks(db, [end], null);
        }),
      );
      const waiting = await postgres().db.query<{ status: string; waits_for: string | null }>(
        'select status, waits_for from sluice.tasks where workflow_id = $1 order by seq',
        [workflowId],
      );
      const states = waiting.map((row) => row.waits_for ?? row.status);
      // The first halts its workflow as a dead letter; else exactly one of the others may go.
      expect(states).toEqual(
        'next' in end ? ['dead_letter', 'workflow', 'workflow'] : ['time', 'workflow'],
      );
      await postgres().db.query('delete from sluice.tasks where workflow_id = $1', [workflowId]);
    }
  });

  it('R-WO2: a submit under way leaves the head alone: it can be claimed', async () => {
    const { db } = postgres();
    const other = await postgres().open();
    const first = await submitOne(db, { workflowId: 'w' });
    await wakeDue(db, 1, null);
    await other.transaction(async (tx) => {
      await lockWorkflows(tx, ['w']);
      await releaseHeads(tx, ['w'], null);
      // It would be refused if its row were locked, and wait for the sweeper to offer it again.
      await claimOne(db, first.taskId);
    });
  });

  it('R-WO2: submits to several workflows in different orders don’t deadlock', async () => {
    const pools = await Promise.all([1, 2].map(() => postgres().openPatient()));
    const workflowIds = Array.from({ length: 20 }, (_, n) => `w${n}`);
    for (let round = 0; round < 20; round += 1) {
      const orders = [workflowIds, workflowIds.toReversed()];
      await Promise.all(
        pools.map(async (db, n) => {
          const members = (orders[n] ?? []).map((workflowId) => newTask({ workflowId }));
          await submitTasks(db, members, null);
        }),
      );
    }
    const out = await postgres().db.query(
      `select workflow_id from sluice.tasks where waits_for = 'time'`,
    );
    expect(out).toHaveLength(workflowIds.length);
  });
});
