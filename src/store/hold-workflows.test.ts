import { randomUUID } from 'node:crypto';

import { beforeEach, expect, it } from 'vitest';

import { toDeadLetter } from '../../test/store/lifecycle.js';
import { atSecond, seedTask, zero, type Seed, type Seeded } from '../../test/store/seed.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import type { TaskId, WorkerId } from '../domain/ids.js';
import type { WaitsFor } from '../domain/task-state.js';
import { cancelTasks } from './cancel-tasks.js';
import type { Queryable } from './database.js';
import { endAttempts } from './end-attempts.js';
import { freeHeldWorkflows, letGoOfCancelled } from './hold-workflows.js';
import { findWaitsFor } from './read-tasks.js';
import { releaseStuckWorkflows } from './release-stuck-workflows.js';
import { replayTasks } from './replay-tasks.js';
import { beatAll, buryWorker, registerWorker } from './workers.js';

const workflowId = 'w';
const behind: Seed = { status: 'pending', waitsFor: 'workflow', workflowId };

describeOnEveryDatabase('a member of a workflow that is cancelled', (db) => {
  it('R-WO2: lets the next one go when it was waiting', async () => {
    const first = await seedTask(db(), { status: 'queued', workflowId });
    const next = await seedTask(db(), { ...behind, deadlineSeconds: 60 });
    const last = await seedTask(db(), behind);
    await cancelTasks(db(), [first.taskId], atSecond(5));
    expect(await waitsOf(db(), next, last)).toEqual(['time', 'workflow']);
    const [row] = await db().query<{ eligible_at: Date; expires_at: Date }>(
      'select eligible_at, expires_at from sluice.tasks where id = $1',
      [next.taskId],
    );
    expect(row).toEqual({ eligible_at: atSecond(5), expires_at: atSecond(65) });
  });

  it('lets the next one go when it was a dead letter that halted them', async () => {
    const halting = await seedTask(db(), { status: 'dead_letter', workflowId });
    const next = await seedTask(db(), behind);
    const [row] = await cancelTasks(db(), [halting.taskId], atSecond(5));
    expect(row).toMatchObject({ from: 'dead_letter', workflowId });
    expect(await waitsOf(db(), next)).toEqual(['time']);
  });

  it('lets nobody go when several are cancelled at once but the one behind them', async () => {
    const first = await seedTask(db(), { status: 'queued', workflowId });
    const second = await seedTask(db(), behind);
    const third = await seedTask(db(), behind);
    await cancelTasks(db(), [first.taskId, second.taskId], zero);
    expect(await waitsOf(db(), third)).toEqual(['time']);
  });
});

describeOnEveryDatabase('a member that is cancelled while it runs keeps its place', (db) => {
  let workerId: WorkerId;
  let running: Seeded;
  let next: Seeded;

  beforeEach(async () => {
    workerId = randomUUID() as WorkerId;
    await registerWorker(db(), workerId, { capacity: 1 }, zero);
    const lapsesAt = atSecond(100);
    running = await seedTask(db(), { status: 'executing', workflowId, workerId, lapsesAt });
    next = await seedTask(db(), behind);
    await cancelTasks(db(), [running.taskId], atSecond(5));
    expect(await waitsOf(db(), next)).toEqual(['workflow']);
  });

  it('until its worker reports with the lease', async () => {
    await letGoOfCancelled(db(), [next.lease], atSecond(6));
    expect(await waitsOf(db(), next)).toEqual(['workflow']);
    await letGoOfCancelled(db(), [running.lease], atSecond(6));
    expect(await waitsOf(db(), next)).toEqual(['time']);
  });

  it('until its worker no longer names it', async () => {
    await named([running.taskId], 20);
    expect(await waitsOf(db(), next)).toEqual(['workflow']);
    await named([], 20);
    expect(await waitsOf(db(), next)).toEqual(['time']);
  });

  it('while the answer to its claim may be on its way to the worker', async () => {
    await named([], 10);
    expect(await waitsOf(db(), next)).toEqual(['workflow']);
  });

  it('until its attempt would have lapsed, and its worker had time to end it', async () => {
    await freeHeldWorkflows(db(), 10, 5_000, atSecond(105));
    expect(await waitsOf(db(), next)).toEqual(['workflow']);
    await freeHeldWorkflows(db(), 10, 5_000, atSecond(105.001));
    expect(await waitsOf(db(), next)).toEqual(['time']);
  });

  it('until its worker is dead', async () => {
    await buryWorker(db(), workerId);
    await freeHeldWorkflows(db(), 10, 0, atSecond(6));
    expect(await waitsOf(db(), next)).toEqual(['time']);
  });

  it('and the lap over stuck workflows does not take it for stuck', async () => {
    expect(await releaseStuckWorkflows(db(), null, 10, atSecond(6))).toEqual({
      released: 0,
      next: null,
    });
    expect(await waitsOf(db(), next)).toEqual(['workflow']);
  });

  it('and when it is replayed it waits for itself to let go', async () => {
    await replayTasks(db(), [running.taskId], {}, atSecond(6));
    expect(await waitsOf(db(), running, next)).toEqual(['workflow', 'workflow']);
    await letGoOfCancelled(db(), [running.lease], atSecond(7));
    expect(await waitsOf(db(), running, next)).toEqual(['time', 'workflow']);
  });

  async function named(currentTasks: TaskId[], second: number): Promise<void> {
    const heartbeat = { currentLoad: 1, status: 'active', currentTasks } as const;
    await beatAll(db(), [{ workerId, heartbeat }], atSecond(second));
  }
});

describeOnEveryDatabase('a member that is replayed', (db) => {
  it('R-WO2: goes on with its workflow when it had halted it', async () => {
    const halting = await seedTask(db(), { status: 'dead_letter', workflowId });
    const next = await seedTask(db(), behind);
    await replayTasks(db(), [halting.taskId], {}, atSecond(5));
    expect(await waitsOf(db(), halting, next)).toEqual(['time', 'workflow']);
  });

  it('R-WO2: waits while a later one runs: two members never run at once', async () => {
    const skipped = await seedTask(db(), {
      status: 'dead_letter',
      workflowId,
      haltsWorkflow: false,
    });
    await seedTask(db(), { status: 'executing', workflowId });
    await replayTasks(db(), [skipped.taskId], {}, atSecond(5));
    expect(await waitsOf(db(), skipped)).toEqual(['workflow']);
  });

  it.each([true, false])(
    'R-WO2: goes as soon as a later one has ended badly, which halts: %s',
    async (haltsWorkflow) => {
      const skipped = await seedTask(db(), {
        status: 'dead_letter',
        workflowId,
        haltsWorkflow: false,
      });
      const later = await seedTask(db(), { status: 'executing', workflowId, haltsWorkflow });
      const last = await seedTask(db(), behind);
      await replayTasks(db(), [skipped.taskId], {}, atSecond(5));
      const [ended] = await endAttempts(db(), [toDeadLetter(later)], atSecond(6));
      expect(ended).toMatchObject({ to: 'dead_letter', released: true });
      expect(await waitsOf(db(), skipped, last)).toEqual(['time', 'workflow']);
    },
  );

  it('R-ST1: the schema refuses a second member that is out', async () => {
    await seedTask(db(), { status: 'executing', workflowId });
    await expect(seedTask(db(), { status: 'queued', workflowId })).rejects.toThrow(
      'tasks_workflow_one_out',
    );
  });
});

describeOnEveryDatabase('releaseStuckWorkflows', (db) => {
  it('lets go whoever waits for a turn that nobody will give it, a stretch at a time', async () => {
    const stuck: Seeded[] = [];
    for (const name of ['a', 'b', 'c']) {
      stuck.push(await seedTask(db(), { ...behind, workflowId: name }));
      await seedTask(db(), { ...behind, workflowId: name });
    }
    const halted = await seedTask(db(), { status: 'dead_letter', workflowId: 'd' });
    const blocked = await seedTask(db(), { ...behind, workflowId: 'd' });

    const first = await releaseStuckWorkflows(db(), null, 2, zero);
    expect(first).toEqual({ next: 'b', released: 2 });
    const second = await releaseStuckWorkflows(db(), first.next, 2, zero);
    expect(second).toEqual({ next: 'd', released: 1 });
    const third = await releaseStuckWorkflows(db(), second.next, 2, zero);
    expect(third).toEqual({ released: 0, next: null });

    expect(await waitsOf(db(), ...stuck)).toEqual(['time', 'time', 'time']);
    expect(await waitsOf(db(), halted, blocked)).toEqual([null, 'workflow']);
  });
});

describeOnPostgres('cancelling a member', (postgres) => {
  it('R-WO2: while another is replayed leaves exactly one of them out', async () => {
    const db = await postgres().openPatient();
    const other = await postgres().openPatient();
    for (let round = 0; round < 20; round += 1) {
      const inRound = { workflowId: `w${String(round)}` };
      const halting = await seedTask(db, { ...inRound, status: 'dead_letter' });
      const later = await seedTask(db, { ...behind, ...inRound });
      const last = await seedTask(db, { ...behind, ...inRound });
      await Promise.all([
        replayTasks(db, [halting.taskId], {}, zero),
        cancelTasks(other, [later.taskId], zero),
      ]);
      expect(await waitsOf(db, halting, later, last)).toEqual(['time', null, 'workflow']);
    }
  });
});

function waitsOf(db: Queryable, ...seeds: Seeded[]): Promise<(WaitsFor | null)[]> {
  return Promise.all(seeds.map((seed) => findWaitsFor(db, seed.taskId)));
}
