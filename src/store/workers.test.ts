import { randomUUID } from 'node:crypto';

import { expect, it } from 'vitest';

import { atSecond, seedTask, zero } from '../../test/store/seed.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import type { Lease, WorkerId } from '../domain/ids.js';
import type { Heartbeat, Registration } from '../protocol/workers-api.js';
import type { Database } from './database.js';
import {
  adoptTasks,
  beatAll,
  benchWorker,
  buryWorker,
  countWorkers,
  findWorker,
  listWorkers,
  purgeWorkers,
  registerWorker,
  requestDrain,
  type Beat,
} from './workers.js';

describeOnEveryDatabase('workers', (db) => {
  it('R-WO5: registers, and says what it can do', async () => {
    const workerId = await register({
      capabilities: ['gpu'],
      taskTypes: ['*'],
      queues: ['q'],
      capacity: 5,
      name: 'n',
      host: 'h',
      version: '1',
    });
    expect(await findWorker(db(), workerId)).toEqual({
      workerId,
      name: 'n',
      host: 'h',
      version: '1',
      status: 'active',
      capabilities: ['gpu'],
      taskTypes: null,
      queues: ['q'],
      capacity: 5,
      currentLoad: 0,
      availableCapacity: 5,
      memoryUsage: null,
      eventLoopDelayMs: null,
      cpuUsage: null,
      consecutiveFailures: 0,
      drainRequestedAt: null,
      registeredAt: zero,
      lastHeartbeatAt: zero,
      benchedUntil: null,
      currentTasks: [],
      health: null,
    });
    expect(await findWorker(db(), randomUUID() as WorkerId)).toBeNull();
  });

  it('R-HA3: a list of them ends early when it passes 8 MiB, and its cursor leads to the rest', async () => {
    const taskTypes = Array.from({ length: 5_000 }, (_, n) => String(n).padEnd(200, 'x'));
    const workerIds = new Set<WorkerId>();
    while (workerIds.size < 12) workerIds.add(await register({ taskTypes }));
    const first = await listWorkers(db(), { limit: 1_000 });
    expect(first.items).toHaveLength(9);
    const cursor = first.nextCursor ?? '';
    const rest = await listWorkers(db(), { limit: 1_000, cursor });
    expect(rest.nextCursor).toBeNull();
    const listed = [...first.items, ...rest.items].map(({ workerId }) => workerId);
    expect(new Set(listed)).toEqual(workerIds);
  });

  it('registering the same id again changes nothing', async () => {
    const workerId = await register({ name: 'first' });
    await registerWorker(db(), workerId, { capacity: 9, name: 'second' }, atSecond(5));
    const worker = await findWorker(db(), workerId);
    expect(worker).toMatchObject({ name: 'first', registeredAt: zero });
  });

  it('a beat is kept, and answered with what the worker holds', async () => {
    const workerId = await register({});
    const held = await seedTask(db(), { status: 'executing', workerId });
    await seedTask(db(), { status: 'executing' });
    const answer = await beat(
      db(),
      workerId,
      {
        currentLoad: 3,
        status: 'draining',
        maxCapacity: 7,
        memoryUsage: 0.5,
        eventLoopDelayMs: 12,
        cpuUsage: 1.25,
        consecutiveFailures: 4,
        health: { disk: 'ok' },
      },
      atSecond(10),
    );
    const { taskId, lease } = held;
    const assignedAt = zero;
    expect(answer).toEqual({
      kind: 'known',
      drainRequested: false,
      held: [{ taskId, lease, assignedAt, heldMs: 10_000 }],
    });
    expect(await findWorker(db(), workerId)).toMatchObject({
      status: 'draining',
      currentLoad: 3,
      capacity: 7,
      memoryUsage: 0.5,
      eventLoopDelayMs: 12,
      cpuUsage: 1.25,
      consecutiveFailures: 4,
      lastHeartbeatAt: atSecond(10),
      currentTasks: [taskId],
      health: { disk: 'ok' },
    });
    // Absent: none. A worker that drains has room for nothing.
    await beat(db(), workerId, { currentLoad: 3, status: 'draining' }, atSecond(20));
    expect(await findWorker(db(), workerId)).toMatchObject({
      ...{ availableCapacity: 0, consecutiveFailures: 0, cpuUsage: null },
    });
    await beat(db(), workerId, { currentLoad: 3, status: 'active' }, atSecond(30));
    expect(await findWorker(db(), workerId)).toMatchObject({ availableCapacity: 4 });
  });

  it('R-OB11: of what a worker holds 100 tasks are shown', async () => {
    const workerId = await register({});
    const held = await Promise.all(
      Array.from({ length: 103 }, () => seedTask(db(), { status: 'executing', workerId })),
    );
    const { currentTasks = [] } = (await findWorker(db(), workerId)) ?? {};
    expect(currentTasks).toHaveLength(100);
    expect(held.map(({ taskId }) => taskId)).toEqual(expect.arrayContaining([...currentTasks]));
  });

  it('many beats are one statement, answered in their order; of two of one worker the later stays', async () => {
    const [one, other] = [await register({}), await register({ capacity: 9 })];
    const held = await seedTask(db(), { status: 'executing', workerId: other });
    const nobody = randomUUID() as WorkerId;
    const beats = [
      { workerId: other, heartbeat: { currentLoad: 1, status: 'active', health: { a: '"\\\0' } } },
      { workerId: nobody, heartbeat: { currentLoad: 1, status: 'active' } },
      { workerId: one, heartbeat: { currentLoad: 2, status: 'active', maxCapacity: 3 } },
      { workerId: other, heartbeat: { currentLoad: 5, status: 'draining', memoryUsage: 0.25 } },
    ] as const;
    const answers = await beatAll(db(), beats, atSecond(1));
    expect(
      answers.map((answer) => answer.kind === 'known' && answer.held.map(({ taskId }) => taskId)),
    ).toEqual([[held.taskId], false, [], [held.taskId]]);
    expect(await findWorker(db(), one)).toMatchObject({ currentLoad: 2, capacity: 3 });
    expect(await findWorker(db(), other)).toMatchObject({
      currentLoad: 5,
      capacity: 9,
      status: 'draining',
      memoryUsage: 0.25,
    });
  });

  it('a worker that holds nothing is known all the same', async () => {
    const workerId = await register({});
    const answer = await beat(db(), workerId, { currentLoad: 0, status: 'active' }, zero);
    expect(answer).toEqual({ kind: 'known', drainRequested: false, held: [] });
  });

  it('an unknown worker and a dead one are told so, and the dead stay dead', async () => {
    const idle = { currentLoad: 0, status: 'active' } as const;
    const nobody = randomUUID() as WorkerId;
    expect(await beat(db(), nobody, idle, zero)).toEqual({ kind: 'unknown' });
    const workerId = await register({});
    expect(await buryWorker(db(), workerId)).toBe(true);
    expect(await buryWorker(db(), workerId)).toBe(false);
    expect(await beat(db(), workerId, idle, zero)).toEqual({ kind: 'unknown' });
    expect(await findWorker(db(), workerId)).toMatchObject({ status: 'dead' });
  });

  it('a drain is asked for once and told with every beat', async () => {
    const workerId = await register({});
    expect(await requestDrain(db(), workerId, atSecond(5))).toBe(true);
    expect(await requestDrain(db(), workerId, atSecond(9))).toBe(true);
    expect(await findWorker(db(), workerId)).toMatchObject({ drainRequestedAt: atSecond(5) });
    const answer = await beat(db(), workerId, { currentLoad: 0, status: 'active' }, zero);
    expect(answer).toMatchObject({ drainRequested: true });
    expect(await requestDrain(db(), randomUUID() as WorkerId, zero)).toBe(false);
  });

  it('leases of a dead or vanished worker move to its new id; those of the living do not', async () => {
    const dead = await register({});
    const living = await register({});
    const ofDead = await seedTask(db(), { status: 'executing', workerId: dead });
    const ofNobody = await seedTask(db(), { status: 'assigned' });
    const ofLiving = await seedTask(db(), { status: 'executing', workerId: living });
    const waiting = await seedTask(db());
    await buryWorker(db(), dead);
    const again = await register({});
    const named = [ofDead, ofNobody, ofLiving, waiting].map(({ taskId, lease }) => ({
      taskId,
      lease,
    }));
    const guessed = named.map(({ taskId }) => ({ taskId, lease: randomUUID() as string as Lease }));
    expect(await adoptTasks(db(), again, guessed)).toEqual([]);
    const adopted = await adoptTasks(db(), again, named);
    expect([...adopted].sort()).toEqual([ofDead.taskId, ofNobody.taskId].sort());
    const rows = await db().query<{ lease: string }>(
      'select lease from sluice.tasks where worker_id = $1',
      [again],
    );
    expect(rows.map((row) => row.lease).sort()).toEqual([ofDead.lease, ofNobody.lease].sort());
  });

  it('counts the living, and the dead of the last hour', async () => {
    const busy = await register({ capacity: 10 });
    await beat(db(), busy, { currentLoad: 4, status: 'active' }, zero);
    const draining = await register({ capacity: 5 });
    await beat(db(), draining, { currentLoad: 1, status: 'draining' }, zero);
    await buryWorker(db(), await register({ capacity: 100 }));
    expect(await countWorkers(db(), atSecond(60))).toEqual({
      active: 1,
      draining: 1,
      dead: 1,
      totalCapacity: 15,
      usedCapacity: 5,
    });
    expect(await countWorkers(db(), atSecond(3600))).toMatchObject({ active: 1, dead: 0 });
  });

  it('purges the long dead that hold nothing', async () => {
    const dayMs = 86_400_000;
    const holding = await register({});
    await seedTask(db(), { status: 'executing', workerId: holding });
    const idle = await register({});
    const living = await register({});
    await buryWorker(db(), holding);
    await buryWorker(db(), idle);
    expect(await purgeWorkers(db(), dayMs, atSecond(86_400))).toEqual([]);
    expect(await purgeWorkers(db(), dayMs, atSecond(86_401))).toEqual([idle]);
    const { items } = await listWorkers(db(), {});
    expect(items.map((worker) => worker.workerId).sort()).toEqual([holding, living].sort());
  });

  it('lists by pages', async () => {
    const all = [await register({}), await register({}), await register({})].sort();
    const first = await listWorkers(db(), { limit: 2 });
    expect(first.items.map((worker) => worker.workerId)).toEqual(all.slice(0, 2));
    const rest = await listWorkers(db(), { limit: 2, cursor: first.nextCursor ?? '' });
    expect(rest.items.map((worker) => worker.workerId)).toEqual(all.slice(2));
    expect(rest.nextCursor).toBeNull();
  });

  it('R-RE11: benching says whether there is no witness, or nothing to do', async () => {
    const [accused, witness, dead] = [await register({}), await register({}), await register({})];
    await buryWorker(db(), dead);
    const bench = (workerId: WorkerId, witnesses: WorkerId[], second: number) =>
      benchWorker(db(), workerId, witnesses, 60_000, atSecond(second));
    expect(await bench(accused, [dead], 0)).toEqual({ kind: 'no witness' });
    expect(await bench(accused, [dead, witness], 0)).toEqual({
      kind: 'benched',
      until: atSecond(60),
    });
    expect(await bench(accused, [witness], 59)).toEqual({ kind: 'already' });
    expect(await bench(dead, [witness], 59)).toEqual({ kind: 'already' });
    expect(await bench(witness, [accused], 60)).toEqual({ kind: 'no witness' });
    expect((await bench(accused, [witness], 60)).kind).toBe('benched');
  });

  async function beat(
    on: Database,
    workerId: WorkerId,
    heartbeat: Heartbeat,
    now: Date,
  ): Promise<Beat | undefined> {
    return (await beatAll(on, [{ workerId, heartbeat }], now))[0];
  }

  async function register(registration: Registration): Promise<WorkerId> {
    const workerId = randomUUID() as WorkerId;
    await registerWorker(db(), workerId, { capacity: 1, ...registration }, zero);
    return workerId;
  }
});
