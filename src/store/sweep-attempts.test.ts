import { randomUUID } from 'node:crypto';

import { expect, it } from 'vitest';

import { atSecond, seedTask, zero } from '../../test/store/seed.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import type { TaskId, WorkerId } from '../domain/ids.js';
import type { Heartbeat } from '../protocol/workers-api.js';
import { readWorkers } from './alert-readings.js';
import { proveHearing } from './hearing.js';
import {
  buryLapsedWorkers,
  findHeldBy,
  findOrphans,
  findOverdue,
  listRunning,
} from './sweep-attempts.js';
import { beatAll, buryWorker, findWorker, registerWorker } from './workers.js';

const leaseMs = 30_000;
const us = randomUUID();
const terms = {
  serverId: us,
  graceMs: 0,
  leaseMs,
  heardForMs: 10_000,
  undeliveredMs: 3_600_000,
  steadyMs: 0,
};
const they = randomUUID();
/** After every attempt should have ended. */
const later = atSecond(36_000);

describeOnEveryDatabase('sweeping attempts', (db) => {
  it('R-RE1: a worker is buried when it was silent for longer than its lease, not before', async () => {
    const workerId = await register(zero);
    const recent = await register(atSecond(1));
    await hear(us, atSecond(-3_600));
    expect(await bury(30)).toEqual([]);
    expect(await bury(30.001)).toEqual([{ workerId, silentMs: 30_001 }]);
    expect(await bury(30.001)).toEqual([]);
    expect(await findWorker(db(), workerId)).toMatchObject({ status: 'dead' });
    expect(await findWorker(db(), recent)).toMatchObject({ status: 'active' });
    expect(await readWorkers(db(), atSecond(300))).toMatchObject({
      livingWorkers: 1,
      lostWorkers: 1,
    });
    expect(await readWorkers(db(), atSecond(331))).toMatchObject({ lostWorkers: 0 });
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
    await hear(us, atSecond(50));
    await bury(100);
    const orphans = await findOrphans(db(), 100);
    expect(new Map(orphans.map((orphan) => [orphan.workerId, orphan.unheard]))).toEqual(
      new Map([
        [unheard, true],
        [heard, false],
      ]),
    );
  });

  it('R-HA2: without a proof that we could write heartbeats for a whole lease nobody is buried', async () => {
    await register(zero);
    expect(await bury(1_000)).toEqual([]);
    await hear(us, atSecond(900));
    expect(await bury(929.999)).toEqual([]);
    // Something was lost meanwhile: the time starts again.
    await hear(us, atSecond(950), false);
    expect(await bury(979.999)).toEqual([]);
    expect(await bury(980.001)).toHaveLength(1);
  });

  it('R-HA2: a gap between two proofs starts the time again, also by a step of the clock', async () => {
    await register(zero);
    await hear(us, zero);
    await db().query(`update sluice.servers set proven_at = proven_at - interval '8 s'`);
    expect(await bury(100)).toEqual([]);
    expect(await hear(us, atSecond(100))).toMatchObject({ hearingMs: 0 });
    await db().query(`update sluice.servers set proven_at = proven_at + interval '1 h'`);
    expect(await hear(us, atSecond(110))).toMatchObject({ hearingMs: 0 });
    expect(await hear(us, atSecond(120))).toMatchObject({ hearingMs: 10_000 });
  });

  it('R-HA2: a worker is not blamed while the server that heard it last could not write', async () => {
    await register(zero, they);
    await hear(us, atSecond(-3_600));
    await hear(they, atSecond(-3_600));
    await hear(they, atSecond(20), false);
    expect(await bury(50)).toEqual([]);
    expect(await bury(50.001)).toHaveLength(1);
    expect(await isUnheard()).toBe(true);
  });

  it('R-HA2: the workers of a server that is gone lapse a lease after its last proof, at no cost', async () => {
    await register(zero, they);
    await hear(us, atSecond(-3_600));
    await hear(they, atSecond(-3_600));
    await hear(they, atSecond(10));
    await db().query(
      `update sluice.servers set proven_at = proven_at - interval '8 s' where id = $1::uuid`,
      [they],
    );
    expect(await bury(40)).toEqual([]);
    expect(await bury(40.001)).toHaveLength(1);
    expect(await isUnheard()).toBe(true);
  });

  it('R-HA2: an attempt is not overdue while the server of its worker could not write', async () => {
    const workerId = await register(later, they);
    await seedTask(db(), { status: 'executing', workerId, lapsesAt: atSecond(10) });
    await hear(they, atSecond(15), false);
    expect(await overdue(24)).toEqual([]);
    expect(await overdue(25)).toHaveLength(1);
  });

  it('R-HA2: failures that start the time again and again delay a burial and a timeout by ten leases', async () => {
    const workerId = await register(zero, us);
    await seedTask(db(), { status: 'executing', workerId, lapsesAt: atSecond(-400) });
    await hear(us, atSecond(299), false);
    const steady = { ...terms, steadyMs: 10 * leaseMs };
    const late = async (second: number): Promise<number> =>
      (await findOverdue(db(), 100, steady, atSecond(second))).length;
    expect(await late(-100)).toBe(0);
    expect(await late(-99.999)).toBe(1);
    const burial = { serverId: us, leaseMs, except: [], steadyMs: 10 * leaseMs };
    expect(await bury(300.001)).toEqual([]);
    expect(await buryLapsedWorkers(db(), burial, atSecond(300))).toEqual([]);
    expect(await buryLapsedWorkers(db(), burial, atSecond(300.001))).toHaveLength(1);
    expect(await isUnheard()).toBe(true);
  });

  it('R-HA1: an attempt is not overdue before its worker was heard after the grace', async () => {
    const workerId = await register(zero);
    const lapsesAt = atSecond(10);
    await seedTask(db(), { status: 'executing', workerId, lapsesAt });
    await beatWith(workerId, {}, atSecond(14.999));
    expect(await overdue(100, 5_000)).toEqual([]);
    await beatWith(workerId, {}, atSecond(15));
    expect(await overdue(100, 5_000)).toHaveLength(1);
    // It is for those who look after dead workers: what it held may go back at no cost.
    await buryWorker(db(), workerId);
    expect(await overdue(100, 5_000)).toEqual([]);
  });

  it('R-HA1: what a worker says of tasks that it does not hold is not kept', async () => {
    const [workerId, other] = [await register(later), await register(later)];
    const lapsesAt = atSecond(10);
    const own = await seedTask(db(), { status: 'executing', workerId, lapsesAt });
    const foreign = await seedTask(db(), { status: 'executing', workerId: other, lapsesAt });
    const undelivered = [own.taskId, foreign.taskId, randomUUID() as TaskId];
    await beatWith(workerId, { undelivered });
    expect(await overdue(11)).toEqual([foreign.taskId]);
    const rows = await db().query(
      'select undelivered::text[] from sluice.workers where undelivered is not null',
    );
    expect(rows).toEqual([{ undelivered: [own.taskId] }]);
  });

  it('R-HA1: an attempt whose result its worker cannot deliver is not overdue, for an hour', async () => {
    const workerId = await register(later);
    const lapsesAt = atSecond(10);
    const ended = await seedTask(db(), { status: 'executing', workerId, lapsesAt });
    const running = await seedTask(db(), { status: 'executing', workerId, lapsesAt });
    await beatWith(workerId, { undelivered: [ended.taskId] });
    expect(await overdue(3_609)).toEqual([running.taskId]);
    expect(await overdue(3_610)).toEqual([ended.taskId, running.taskId].sort());
    // The result has arrived, and the task came back to this worker.
    await beatWith(workerId, {});
    expect(await overdue(11)).toEqual([ended.taskId, running.taskId].sort());
  });

  it('R-RE6: the long task of a healthy worker is never touched', async () => {
    const workerId = await register(later);
    await seedTask(db(), { status: 'executing', workerId, lapsesAt: atSecond(36_000) });
    await seedTask(db());
    expect(await findOrphans(db(), 100)).toEqual([]);
    expect(await findOverdue(db(), 100, terms, atSecond(35_999))).toEqual([]);
  });

  it('finds what timed out and what was never started, each exactly when it is overdue', async () => {
    const workerId = await register(later);
    const lapsesAt = atSecond(10);
    const slow = await seedTask(db(), { status: 'executing', workerId, lapsesAt });
    const idle = await seedTask(db(), { status: 'assigned', workerId, lapsesAt });
    expect(await overdue(10)).toEqual([]);
    expect(await overdue(10.001)).toEqual([slow.taskId, idle.taskId].sort());
  });

  it('a running attempt gets its grace, one that was never started does not', async () => {
    const workerId = await register(later);
    const lapsesAt = atSecond(10);
    const slow = await seedTask(db(), { status: 'executing', workerId, lapsesAt });
    const idle = await seedTask(db(), { status: 'assigned', workerId, lapsesAt });
    expect(await overdue(15, 5_000)).toEqual([idle.taskId]);
    expect(await overdue(15.001, 5_000)).toEqual([slow.taskId, idle.taskId].sort());
  });

  it('is bounded, and takes the most overdue of a worker first', async () => {
    const workerId = await register(later);
    await seedTask(db(), { status: 'executing', workerId, lapsesAt: atSecond(2) });
    const first = await seedTask(db(), { status: 'executing', workerId, lapsesAt: atSecond(1) });
    const found = await findOverdue(db(), 1, terms, atSecond(3));
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

  function bury(second: number): ReturnType<typeof buryLapsedWorkers> {
    return buryLapsedWorkers(
      db(),
      { serverId: us, leaseMs, except: [], steadyMs: 0 },
      atSecond(second),
    );
  }

  function hear(serverId: string, now: Date, continues = true): ReturnType<typeof proveHearing> {
    return proveHearing(db(), { serverId, leaseMs, continues }, now);
  }

  async function beatWith(
    workerId: WorkerId,
    news: Partial<Heartbeat>,
    now = later,
  ): Promise<void> {
    const heartbeat = { currentLoad: 2, status: 'active', ...news } as const;
    await beatAll(db(), [{ workerId, heartbeat }], now);
  }

  async function isUnheard(): Promise<boolean | undefined> {
    const [row] = await db().query<{ lapsed_unheard: boolean }>(
      'select lapsed_unheard from sluice.workers',
    );
    return row?.lapsed_unheard;
  }

  async function overdue(second: number, graceMs = 0): Promise<TaskId[]> {
    const found = await findOverdue(db(), 100, { ...terms, graceMs }, atSecond(second));
    return found.map((attempt) => attempt.taskId).sort();
  }

  async function register(now: Date, heardBy: string | null = null): Promise<WorkerId> {
    const workerId = randomUUID() as WorkerId;
    await registerWorker(db(), workerId, { capacity: 1 }, now, heardBy);
    return workerId;
  }
});
