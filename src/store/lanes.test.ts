import { expect, it } from 'vitest';

import { atSecond, seedTask, zero } from '../../test/store/seed.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import { defaultQueueSettings } from '../domain/queue-settings.js';
import type { Database, Instant } from './database.js';
import { enterLanes, purgeLanes, type EnteringLane } from './lanes.js';
import { putQueue } from './queues.js';

const minuteMs = 60_000;

function lane(taskType: string, change: Partial<EnteringLane> = {}): EnteringLane {
  return {
    queue: 'q',
    taskType,
    capabilities: [],
    keptForMs: minuteMs,
    ...change,
  };
}

async function allow(db: Database, maxLanes: number): Promise<void> {
  await putQueue(db, 'q', { ...defaultQueueSettings, maxLanes }, zero);
}

async function counted(db: Database): Promise<unknown[]> {
  return db.query('select queue, lanes from sluice.lane_counts order by queue');
}

async function purge(db: Database, now: Instant): Promise<number> {
  const { purged } = await purgeLanes(db, { limit: 10, keptForMs: minuteMs }, now);
  return purged;
}

describeOnEveryDatabase('lanes', (db) => {
  it('R-HA3: a queue has so many lanes at most; those it has are let in again', async () => {
    await allow(db(), 3);
    const types = ['a', 'b', 'c', 'd'].map((taskType) => lane(taskType));
    expect(await enterLanes(db(), types, zero)).toEqual([true, true, true, false]);
    expect(await enterLanes(db(), types.toReversed(), zero)).toEqual([false, true, true, true]);
    const elsewhere = lane('d', { queue: 'other' });
    expect(await enterLanes(db(), [elsewhere], zero)).toEqual([true]);
    await allow(db(), 4);
    expect(await enterLanes(db(), [lane('d'), lane('a')], zero)).toEqual([true, true]);
    expect(await counted(db())).toEqual([
      { queue: 'other', lanes: 1 },
      { queue: 'q', lanes: 4 },
    ]);
  });

  it('R-HA3: capability sets are lanes as task types are', async () => {
    await allow(db(), 3);
    const sets = [[], ['x'], ['x', 'y"{},'], ['y']];
    const lanes = sets.map((capabilities) => lane('t', { capabilities }));
    const entered = await enterLanes(db(), lanes, zero);
    expect(entered.filter((isIn) => isIn)).toHaveLength(3);
  });

  it('R-HA3: a lane that was not entered again gives up its place, unless something waits in it', async () => {
    await allow(db(), 3);
    await enterLanes(db(), [lane('a'), lane('b'), lane('c')], zero);
    await seedTask(db(), { queue: 'q', taskType: 'b', status: 'queued' });
    await enterLanes(db(), [lane('c')], atSecond(30));
    expect(await purge(db(), atSecond(59))).toBe(0);
    expect(await purge(db(), atSecond(61))).toBe(1);
    expect(await counted(db())).toEqual([{ queue: 'q', lanes: 2 }]);
    expect(await purge(db(), atSecond(91))).toBe(1);
    expect(await purge(db(), atSecond(3_600))).toBe(0);
    expect(await enterLanes(db(), [lane('d'), lane('e'), lane('f')], atSecond(100))).toEqual([
      ...[true, true, false],
    ]);
  });

  it('R-HA3: lanes of named queues are purged alone, so many at once', async () => {
    const types = ['a', 'b', 'c'];
    const lanes = types.flatMap((type) => [lane(type), lane(type, { queue: 'other' })]);
    await enterLanes(db(), lanes, zero);
    await seedTask(db(), { queue: 'q', taskType: 'a', status: 'queued' });
    const some = { limit: 2, keptForMs: minuteMs, queues: ['q'] };
    const first = await purgeLanes(db(), some, atSecond(61));
    const second = await purgeLanes(db(), some, atSecond(61));
    expect([first.seen, second.seen]).toEqual([2, 1]);
    expect(first.purged + second.purged).toBe(2);
    expect(await counted(db())).toEqual([
      { queue: 'other', lanes: 3 },
      { queue: 'q', lanes: 1 },
    ]);
  });

  it('leaves no count of a queue without lanes', async () => {
    await enterLanes(db(), [lane('a')], zero);
    await purge(db(), atSecond(61));
    expect(await counted(db())).toEqual([]);
  });
});

describeOnPostgres('lanes over many connections', (postgres) => {
  it('R-HA3: the number holds while many enter and purge at once', async () => {
    const { db } = postgres();
    await allow(db, 20);
    const rounds = Array.from({ length: 40 }, (_, round) =>
      Array.from({ length: 10 }, (__, index) => lane(`t${(7 * round + index) % 50}`)),
    );
    const answers = await Promise.all([
      ...rounds.map((lanes) => enterLanes(db, lanes, zero)),
      ...rounds.map(() => purgeLanes(db, { limit: 5, keptForMs: minuteMs }, zero)),
    ]);
    expect(answers.flat()).toContain(false);
    const rows = await db.query('select from sluice.lanes');
    expect(rows).toHaveLength(20);
    expect(await counted(db)).toEqual([{ queue: 'q', lanes: 20 }]);
  });
});
