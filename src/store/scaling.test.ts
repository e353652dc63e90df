import { randomUUID } from 'node:crypto';

import { expect, it } from 'vitest';

import type { WorkerId } from '../domain/ids.js';
import type { WorkerOffer } from '../protocol/workers-api.js';
import { explained } from '../../test/store/explained.js';
import { newTask, newTasks } from '../../test/store/lifecycle.js';
import { atSecond, seedTask, zero } from '../../test/store/seed.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import type { Database } from './database.js';
import {
  countGroups,
  countLanes,
  findAsked,
  leaveAsking,
  noteAsked,
  takeAskingTurn,
  type AskingTurn,
} from './scaling.js';
import { wakeDue } from './feed-line.js';
import { submitTasks } from './submit-tasks.js';
import { buryWorker, findOffers, registerWorker } from './workers.js';

describeOnEveryDatabase('scaling', (db) => {
  it('R-AD5: counts by lane what is due, and neither what waits for a time nor for its turn', async () => {
    const tasks = [
      ...newTasks(3, { queue: 'a', costJson: '{"tokens":7}' }),
      ...newTasks(2, { queue: 'a' }),
      newTask({ queue: 'a', capabilities: ['gpu'] }),
      ...newTasks(5, { queue: 'b', taskType: 'train' }),
      ...newTasks(4, { queue: 'b', delaySeconds: 60 }),
      ...newTasks(3, { queue: 'c', workflowId: 'w' }),
    ];
    await submitTasks(db(), tasks, zero);
    await wakeDue(db(), 100, zero);
    const lane = (queue: string, taskType = 'chat', capabilities: string[] = []) => ({
      lane: { queue, taskType, capabilities },
    });
    expect(await countLanes(db(), 100, 100)).toEqual([
      { ...lane('a'), due: 5, cost: expect.anything() as unknown },
      { ...lane('a', 'chat', ['gpu']), due: 1, cost: {} },
      { ...lane('b', 'train'), due: 5, cost: {} },
      { ...lane('c'), due: 1, cost: {} },
    ]);
    expect((await countLanes(db(), 100, 3)).map(({ due }) => due)).toEqual([3, 1, 3, 1]);
    expect(await countLanes(db(), 2, 3)).toHaveLength(2);
  });

  it('R-AD5: workers that can do the same are one group, with what they hold by now', async () => {
    const busy = await register(db(), 'busy', 3);
    const gone = await register(db(), 'gone', 50);
    await register(db(), 'idle', 5);
    await register(db(), 'trainer', 2, ['gpu']);
    const benched = await register(db(), 'benched', 8);
    await buryWorker(db(), gone);
    for (let held = 0; held < 4; held++) {
      await seedTask(db(), { status: 'executing', workerId: busy });
    }
    await db().query('update sluice.workers set benched_until = $2 where id = $1', [
      benched,
      atSecond(60),
    ]);
    const all = { after: null, limit: 100 };
    const { groups, next } = await countGroups(db(), all, zero);
    expect(next).toBeNull();
    const [many, one] = groups.toSorted((a, b) => b.workers - a.workers);
    expect(many).toMatchObject({
      ...{ workers: 3, capacity: 16, busy: 3, free: 5, taking: 2 },
      suspendedUntil: atSecond(60),
      names: expect.arrayContaining(['busy', 'idle', 'benched']) as unknown,
      idle: expect.arrayContaining(['idle', 'benched']) as unknown,
    });
    expect(one).toMatchObject({
      ...{ workers: 1, capacity: 2, busy: 0, free: 2, taking: 1 },
      suspendedUntil: null,
      names: ['trainer'],
      idle: ['trainer'],
    });
    const later = await countGroups(db(), all, atSecond(61));
    expect(later.groups.find(({ workers }) => workers === 3)?.free).toBe(13);
  });

  it('R-HA4: what workers name is read once for all that can do the same, however they order it', async () => {
    const workerId = await registerOffer(db(), { taskTypes: ['x', 'y'], queues: ['q'] });
    await registerOffer(db(), { taskTypes: ['y', 'x', 'y'], queues: ['q'] });
    await registerOffer(db(), { taskTypes: ['x'], queues: ['y', 'q'] });
    const { groups } = await countGroups(db(), { after: null, limit: 100 }, zero);
    const found = groups.filter(({ offerWeight }) => offerWeight > 0);
    expect(found.map(({ workers }) => workers).toSorted()).toEqual([1, 2]);
    const offers = await findOffers(db(), [workerId]);
    expect(offers.get(workerId)).toEqual({
      taskTypes: ['x', 'y'],
      queues: ['q'],
      capabilities: [],
    });
  });

  it('R-HA4: active workers are counted in portions', async () => {
    for (let n = 0; n < 5; n += 1) await register(db(), `w${n}`, 1);
    const seen: string[] = [];
    let after: WorkerId | null = null;
    for (let portions = 0; portions < 100; portions += 1) {
      const portion: Awaited<ReturnType<typeof countGroups>> = await countGroups(
        db(),
        { after, limit: 2 },
        zero,
      );
      seen.push(...portion.groups.flatMap(({ names }) => names));
      after = portion.next;
      if (after === null) break;
    }
    expect(after).toBeNull();
    expect(seen.filter((name) => /^w\d$/.test(name)).toSorted()).toEqual([
      ...['w0', 'w1', 'w2', 'w3', 'w4'],
    ]);
  });

  it('R-AD5: one asks at a time, until it leaves or falls silent', async () => {
    const one = turn();
    const other = turn();
    expect(await takeAskingTurn(db(), one, zero)).toBe(true);
    expect(await takeAskingTurn(db(), other, atSecond(5))).toBe(false);
    expect(await takeAskingTurn(db(), one, atSecond(5))).toBe(true);
    expect(await takeAskingTurn(db(), other, atSecond(14))).toBe(false);
    expect(await takeAskingTurn(db(), other, atSecond(16))).toBe(true);
    await leaveAsking(db(), one.asker);
    expect(await takeAskingTurn(db(), one, atSecond(17))).toBe(false);
    await leaveAsking(db(), other.asker);
    expect(await takeAskingTurn(db(), one, atSecond(17))).toBe(true);
    expect(await takeAskingTurn(db(), turn({ isAlone: true }), atSecond(17))).toBe(true);
  });

  it('R-AD5: a failure is kept with its beginning until it is over', async () => {
    const ours = turn();
    expect(await findAsked(db(), 10_000, zero)).toBeNull();
    await takeAskingTurn(db(), ours, zero);
    const asked = async (second: number, error: string | null, asker = ours.asker) => {
      await noteAsked(db(), asker, error, atSecond(second));
      return findAsked(db(), 10_000, atSecond(second));
    };
    const fine = { provisioner: 'webhook', failingSince: null, error: null };
    expect(await asked(1, null)).toEqual({ ...fine, askedAt: atSecond(1) });
    await asked(2, 'it answered 500');
    expect(await asked(3, 'it answered 503')).toEqual({
      ...fine,
      askedAt: atSecond(3),
      failingSince: atSecond(2),
      error: 'it answered 503',
    });
    expect(await asked(4, null, randomUUID())).toMatchObject({ askedAt: atSecond(3) });
    expect(await asked(5, null)).toEqual({ ...fine, askedAt: atSecond(5) });
    expect(await findAsked(db(), 10_000, atSecond(11))).toBeNull();
  });
});

describeOnPostgres('scaling', (postgres) => {
  it('R-AD5: reads no more of a long line than it counts', async () => {
    await submitTasks(postgres().db, newTasks(3_000, { queue: 'long' }), zero);
    const { db, plans } = explained(postgres().db);
    expect(await countLanes(db, 100, 200)).toMatchObject([{ due: 200 }]);
    const [plan] = plans;
    expect(plan?.faults).toEqual([]);
    expect(plan?.visited).toBeLessThan(250);
  });
});

function turn(change: Partial<AskingTurn> = {}): AskingTurn {
  return {
    asker: randomUUID(),
    provisioner: 'webhook',
    leaseMs: 10_000,
    isAlone: false,
    ...change,
  };
}

async function registerOffer(db: Database, offer: WorkerOffer): Promise<WorkerId> {
  const workerId = randomUUID() as WorkerId;
  await registerWorker(db, workerId, { capacity: 1, ...offer }, zero);
  return workerId;
}

async function register(
  db: Database,
  name: string,
  capacity: number,
  capabilities: string[] = [],
): Promise<WorkerId> {
  const workerId = randomUUID() as WorkerId;
  await registerWorker(db, workerId, { name, capacity, capabilities }, zero);
  return workerId;
}
