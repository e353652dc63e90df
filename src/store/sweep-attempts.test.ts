import { randomUUID } from 'node:crypto';

import { expect, it } from 'vitest';

import { atSecond, seedTask, zero } from '../../test/store/seed.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import type { TaskId, WorkerId } from '../domain/ids.js';
import {
  buryLapsedWorkers,
  findHeldBy,
  findOrphans,
  findOverdue,
  listRunning,
} from './sweep-attempts.js';
import { buryWorker, findWorker, registerWorker } from './workers.js';

const leaseMs = 30_000;

describeOnEveryDatabase('sweeping attempts', (db) => {
  it('R-RE1: a worker is buried when it was silent for longer than its lease, not before', async () => {
    const workerId = await register(zero);
    const recent = await register(atSecond(1));
    expect(await buryLapsedWorkers(db(), leaseMs, 3_600_000, atSecond(30))).toEqual([]);
    const buried = await buryLapsedWorkers(db(), leaseMs, 3_600_000, atSecond(30.001));
    expect(buried).toEqual([{ workerId, silentMs: 30_001 }]);
    expect(await buryLapsedWorkers(db(), leaseMs, 3_600_000, atSecond(30.001))).toEqual([]);
    expect(await findWorker(db(), workerId)).toMatchObject({ status: 'dead' });
    expect(await findWorker(db(), recent)).toMatchObject({ status: 'active' });
  });

  it('R-RE1: finds what a dead worker holds, and a worker nobody knows', async () => {
    const dead = await register(zero);
    const ofDead = [
      await seedTask(db(), { status: 'executing', workerId: dead }),
      await seedTask(db(), { status: 'assigned', workerId: dead }),
    ];
    const ofNobody = await seedTask(db(), { status: 'executing' });
    await buryWorker(db(), dead);
    const orphans = await findOrphans(db(), 100);
    expect(orphans.map((orphan) => orphan.taskId).sort()).toEqual(
      [...ofDead, ofNobody].map((seed) => seed.taskId).sort(),
    );
    expect(orphans.find((orphan) => orphan.taskId === ofNobody.taskId)).toMatchObject({
      ...ofNobody,
      status: 'executing',
      attempt: 1,
      queue: 'default',
      priority: 'medium',
      retryCount: 0,
      maxRetries: 3,
      deferrals: 0,
      returns: 0,
      timeoutSeconds: 600,
      workflowId: null,
      cost: {},
      unheard: false,
    });
    expect(await findOrphans(db(), 2)).toHaveLength(2);
  });

  it('R-RE1: a worker that was silent for longer than it could be heard is not to blame', async () => {
    const unheard = await register(zero);
    const heard = await register(atSecond(60));
    for (const workerId of [unheard, heard]) {
      await seedTask(db(), { status: 'executing', workerId });
    }
    // Heard since second 50.
    await buryLapsedWorkers(db(), leaseMs, 50_000, atSecond(100));
    const orphans = await findOrphans(db(), 100);
    expect(new Map(orphans.map((orphan) => [orphan.workerId, orphan.unheard]))).toEqual(
      new Map([
        [unheard, true],
        [heard, false],
      ]),
    );
  });

  it('R-RE6: the long task of a healthy worker is never touched', async () => {
    const workerId = await register(zero);
    await seedTask(db(), { status: 'executing', workerId, lapsesAt: atSecond(36_000) });
    await seedTask(db());
    expect(await findOrphans(db(), 100)).toEqual([]);
    expect(await findOverdue(db(), 100, 0, atSecond(35_999))).toEqual([]);
  });

  it('finds what timed out and what was never started, each exactly when it is overdue', async () => {
    const workerId = await register(zero);
    const lapsesAt = atSecond(10);
    const slow = await seedTask(db(), { status: 'executing', workerId, lapsesAt });
    const idle = await seedTask(db(), { status: 'assigned', workerId, lapsesAt });
    expect(await overdue(10)).toEqual([]);
    expect(await overdue(10.001)).toEqual([slow.taskId, idle.taskId].sort());
  });

  it('a running attempt gets its grace, one that was never started does not', async () => {
    const workerId = await register(zero);
    const lapsesAt = atSecond(10);
    const slow = await seedTask(db(), { status: 'executing', workerId, lapsesAt });
    const idle = await seedTask(db(), { status: 'assigned', workerId, lapsesAt });
    expect(await overdue(15, 5_000)).toEqual([idle.taskId]);
    expect(await overdue(15.001, 5_000)).toEqual([slow.taskId, idle.taskId].sort());
  });

  it('is bounded, and takes the most overdue of a worker first', async () => {
    const workerId = await register(zero);
    await seedTask(db(), { status: 'executing', workerId, lapsesAt: atSecond(2) });
    const first = await seedTask(db(), { status: 'executing', workerId, lapsesAt: atSecond(1) });
    const found = await findOverdue(db(), 1, 0, atSecond(3));
    expect(found.map((attempt) => attempt.taskId)).toEqual([first.taskId]);
  });

  it('lists what a worker holds, and all that runs', async () => {
    const workerId = await register(zero);
    const mine = await seedTask(db(), { status: 'assigned', workerId, queue: 'a' });
    const other = await seedTask(db(), { status: 'executing', queue: 'b' });
    await seedTask(db());
    const held = await findHeldBy(db(), workerId, 10);
    expect(held.map((attempt) => attempt.taskId)).toEqual([mine.taskId]);
    const running = await listRunning(db(), atSecond(3));
    const told = running.map(({ heldMs, ...row }) => row);
    expect(told).toHaveLength(2);
    expect(told).toEqual(
      expect.arrayContaining([
        { taskId: mine.taskId, lease: mine.lease, queue: 'a', cost: {} },
        { taskId: other.taskId, lease: other.lease, queue: 'b', cost: {} },
      ]),
    );
    for (const { heldMs } of running) expect(heldMs).toBe(3_000);
  });

  async function overdue(second: number, graceMs = 0): Promise<TaskId[]> {
    const found = await findOverdue(db(), 100, graceMs, atSecond(second));
    return found.map((attempt) => attempt.taskId).sort();
  }

  async function register(now: Date): Promise<WorkerId> {
    const workerId = randomUUID() as WorkerId;
    await registerWorker(db(), workerId, { capacity: 1 }, now);
    return workerId;
  }
});
