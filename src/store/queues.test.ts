import { expect, it } from 'vitest';

import { atSecond, seedTask, zero } from '../../test/store/seed.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import { closed, type Circuit } from '../domain/circuit.js';
import { noAgeing } from '../domain/priority.js';
import { defaultQueueSettings, type QueueSettings } from '../domain/queue-settings.js';
import { LockedError } from './database.js';
import {
  deleteLimit,
  findLimit,
  findLimitsChanged,
  listLimits,
  putLimit,
  unknownLimits,
} from './limits.js';
import {
  changeCircuit,
  ensureQueues,
  findConfigured,
  findQueue,
  listQueues,
  pauseQueue,
  purgeQueues,
  putQueue,
  replaceQueue,
  resumeQueue,
} from './queues.js';

const account = { unit: 'requests', rate: 500, perSeconds: 60, burst: null };
const usesAccount: QueueSettings = { ...defaultQueueSettings, limits: [{ use: 'account' }] };

describeOnEveryDatabase('purgeQueues', (db) => {
  const dayMs = 24 * 3_600_000;
  const day = (n: number) => new Date(zero.getTime() + n * dayMs);
  const names = async () => (await listQueues(db(), {})).items.map(({ name }) => name);

  it('R-HA3: queues that were only named go when nobody named them for so long', async () => {
    await ensureQueues(db(), ['idle', 'named', 'with-task', 'with-settings'], day(0));
    await putQueue(db(), 'with-settings', defaultQueueSettings, day(0));
    await seedTask(db(), { queue: 'with-task', status: 'pending' });
    await ensureQueues(db(), ['named'], day(5));
    expect(await purgeQueues(db(), 7 * dayMs, 9, day(6.9))).toBe(0);
    expect(await purgeQueues(db(), 7 * dayMs, 9, day(7.1))).toBe(1);
    expect(await names()).toEqual(['named', 'with-settings', 'with-task']);
    // It had a task then, and is looked at again later.
    await db().query('delete from sluice.tasks');
    expect(await purgeQueues(db(), 7 * dayMs, 9, day(13))).toBe(1);
    expect(await names()).toEqual(['with-settings', 'with-task']);
    expect(await purgeQueues(db(), 7 * dayMs, 9, day(15))).toBe(1);
    await ensureQueues(db(), ['idle'], day(15));
    expect(await names()).toEqual(['idle', 'with-settings']);
  });

  it('is bounded', async () => {
    await ensureQueues(db(), ['a', 'b', 'c'], day(0));
    expect(await purgeQueues(db(), dayMs, 2, day(2))).toBe(2);
    expect(await names()).toEqual(['c']);
  });
});

describeOnEveryDatabase('queues', (db) => {
  it('a queue that is first named has the default settings', async () => {
    await ensureQueues(db(), ['b', 'a', 'b']);
    await ensureQueues(db(), ['a']);
    const row = { version: 0, settings: defaultQueueSettings, circuit: closed };
    expect((await listQueues(db(), {})).items).toEqual([
      { name: 'a', ...row },
      { name: 'b', ...row },
    ]);
    expect(await findQueue(db(), 'a')).toEqual({ name: 'a', ...row });
    expect(await findQueue(db(), 'c')).toBeNull();
  });

  it('R-CH7: finds those that were configured, all or since an instant', async () => {
    await ensureQueues(db(), ['untouched', 'paused']);
    await pauseQueue(db(), 'paused', null);
    await putQueue(db(), 'put', defaultQueueSettings, null);
    const names = async (since: Date | null) =>
      (await findConfigured(db(), since)).map(({ name }) => name).sort();
    expect(await names(null)).toEqual(['paused', 'put']);
    expect(await names(new Date(Date.now() - 60_000))).toEqual(['paused', 'put']);
    expect(await names(new Date(Date.now() + 60_000))).toEqual([]);
  });

  it('R-CH7: a put replaces the whole and makes a new version', async () => {
    await putLimit(db(), 'account', account);
    const settings: QueueSettings = {
      limits: [
        { unit: 'tokens', rate: 30_000, perSeconds: 60, burst: 10 },
        { unit: 'requests', rate: 1, perSeconds: 1, burst: null },
        { use: 'account' },
      ],
      maxConcurrency: 5,
      maxReady: 100,
      maxActive: 1000,
      maxLanes: 500,
      paused: true,
      pausedUntil: atSecond(60),
      ageing: noAgeing,
    };
    const put = { name: 'q', version: 1, settings, circuit: closed };
    expect(await putQueue(db(), 'q', settings, zero)).toEqual(put);
    expect(await findQueue(db(), 'q')).toEqual(put);
    expect(await putQueue(db(), 'q', defaultQueueSettings, zero)).toEqual({
      ...put,
      version: 2,
      settings: defaultQueueSettings,
    });
  });

  it('R-CH7: settings made from a version replace only that version', async () => {
    const settings = { ...defaultQueueSettings, maxConcurrency: 3 };
    const made = await replaceQueue(db(), 'q', null, settings, zero);
    expect(made).toEqual({ name: 'q', version: 1, settings, circuit: closed });
    // There is a queue by now.
    expect(await replaceQueue(db(), 'q', null, defaultQueueSettings, zero)).toBeNull();
    const put = await putQueue(db(), 'q', { ...settings, maxReady: 5 }, zero);
    expect(await replaceQueue(db(), 'q', made, defaultQueueSettings, zero)).toBeNull();
    expect(await findQueue(db(), 'q')).toEqual(put);
    expect(await replaceQueue(db(), 'q', put, settings, zero)).toMatchObject({
      version: 3,
      settings,
    });
  });

  it('pauses until a time or until resumed, and creates what is not there', async () => {
    const until = atSecond(5);
    const paused = { ...defaultQueueSettings, paused: true };
    const row = { name: 'q', circuit: closed };
    expect(await pauseQueue(db(), 'q', until)).toEqual({
      ...row,
      version: 1,
      settings: { ...paused, pausedUntil: until },
    });
    expect(await pauseQueue(db(), 'q', null)).toEqual({ ...row, version: 2, settings: paused });
    const resumed = { ...row, version: 3, settings: defaultQueueSettings };
    expect(await resumeQueue(db(), 'q')).toEqual(resumed);
    expect(await resumeQueue(db(), 'new')).toMatchObject({ version: 1 });
  });

  it('pausing changes nothing else', async () => {
    await putQueue(db(), 'q', { ...defaultQueueSettings, maxConcurrency: 3 }, zero);
    expect((await pauseQueue(db(), 'q', null)).settings.maxConcurrency).toBe(3);
  });

  it('lists by pages', async () => {
    await ensureQueues(db(), ['a', 'b', 'c']);
    const first = await listQueues(db(), { limit: 2 });
    expect(first.items.map((queue) => queue.name)).toEqual(['a', 'b']);
    const rest = await listQueues(db(), { limit: 2, cursor: first.nextCursor ?? '' });
    expect(rest.items.map((queue) => queue.name)).toEqual(['c']);
    expect(rest.nextCursor).toBeNull();
  });
});

const open: Circuit = {
  kind: 'open',
  reason: 'unavailable',
  trips: 2,
  slots: 40,
  untilMs: atSecond(30).getTime(),
  probesAtMs: atSecond(60).getTime(),
};
const recovering: Circuit = {
  kind: 'recovering',
  reason: 'rate_limited',
  trips: 0,
  slots: 7,
  sinceMs: atSecond(5).getTime(),
  step: 1,
};

describeOnEveryDatabase('circuits', (db) => {
  it('R-RE9: each kind is read as it was written, under a new version', async () => {
    await ensureQueues(db(), ['q']);
    for (const [version, circuit] of [open, recovering, closed, recovering, open].entries()) {
      const row = { name: 'q', version: version + 1, settings: defaultQueueSettings, circuit };
      expect(await changeCircuit(db(), 'q', version, circuit)).toEqual(row);
      expect(await findQueue(db(), 'q')).toEqual(row);
      expect(await findConfigured(db(), null)).toEqual([row]);
    }
  });

  it('R-RE9: nothing changes under a version that is not the latest, or where no queue is', async () => {
    expect(await changeCircuit(db(), 'q', 0, open)).toBeNull();
    const { version } = await putQueue(db(), 'q', defaultQueueSettings, zero);
    expect(await changeCircuit(db(), 'q', version - 1, open)).toBeNull();
    expect(await changeCircuit(db(), 'q', version + 1, open)).toBeNull();
    expect(await findQueue(db(), 'q')).toMatchObject({ version, circuit: closed });
  });

  it('R-RE9: a put or a pause leaves the circuit as it is; to resume closes it', async () => {
    await ensureQueues(db(), ['q']);
    await changeCircuit(db(), 'q', 0, open);
    const put = await putQueue(db(), 'q', { ...defaultQueueSettings, maxConcurrency: 3 }, zero);
    expect(put).toMatchObject({ version: 2, circuit: open });
    expect(await pauseQueue(db(), 'q', null)).toMatchObject({ version: 3, circuit: open });
    expect(await resumeQueue(db(), 'q')).toMatchObject({
      version: 4,
      circuit: closed,
      settings: { paused: false, maxConcurrency: 3 },
    });
  });

  it('R-ST1, R-RE9: a circuit that makes no sense is not stored', async () => {
    await ensureQueues(db(), ['q']);
    await changeCircuit(db(), 'q', 0, open);
    for (const change of [
      `circuit = 'ajar'`,
      `circuit = 'closed'`,
      'circuit_reason = null',
      `circuit_reason = 'bored'`,
      'circuit_until = null',
      'circuit_since = now()',
      'circuit_step = 0',
      'circuit_trips = -1',
    ]) {
      await expect(db().query(`update sluice.queues set ${change}`), change).rejects.toThrow();
    }
    expect(await findQueue(db(), 'q')).toMatchObject({ circuit: open });
  });
});

describeOnEveryDatabase('limits', (db) => {
  it('are put, found, listed and deleted', async () => {
    const put = await putLimit(db(), 'account', account);
    expect(put).toEqual({ name: 'account', version: put.version, ...account });
    const changed = { unit: 'tokens', rate: 9, perSeconds: 1, burst: 2 };
    await putLimit(db(), 'account', changed);
    expect(await findLimit(db(), 'account')).toEqual({ name: 'account', ...changed });
    expect(await listLimits(db())).toEqual([{ name: 'account', ...changed }]);
    expect(await unknownLimits(db(), ['x', 'account', 'x'])).toEqual(['x']);
    expect(await deleteLimit(db(), 'account')).toMatchObject({ kind: 'deleted' });
    expect(await deleteLimit(db(), 'account')).toEqual({ kind: 'missing' });
    expect(await findLimit(db(), 'account')).toBeNull();
  });

  it('R-CH7: one that changes, or is deleted and made again, has a greater version', async () => {
    const first = await putLimit(db(), 'account', account);
    const other = await putLimit(db(), 'other', account);
    const second = await putLimit(db(), 'account', account);
    await deleteLimit(db(), 'account');
    const third = await putLimit(db(), 'account', account);
    const versions = [first, other, second, third].map(({ version }) => version);
    expect(versions).toEqual([...new Set(versions)].sort((one, two) => one - two));
  });

  it('R-CH7: finds all, or those that were put since an instant', async () => {
    const { version } = await putLimit(db(), 'account', account);
    const put = [{ name: 'account', version, limit: account }];
    expect(await findLimitsChanged(db(), null)).toEqual(put);
    expect(await findLimitsChanged(db(), new Date(Date.now() - 60_000))).toEqual(put);
    expect(await findLimitsChanged(db(), new Date(Date.now() + 60_000))).toEqual([]);
    await db().query(`update sluice.limits set changed_at = now() - interval '1 hour'`);
    expect(await findLimitsChanged(db(), new Date(Date.now() - 60_000))).toEqual([]);
    const changed = await putLimit(db(), 'account', { ...account, rate: 7 });
    expect(await findLimitsChanged(db(), new Date(Date.now() - 60_000))).toEqual([
      { name: 'account', version: changed.version, limit: { ...account, rate: 7 } },
    ]);
  });

  it('are not deleted while a queue uses them', async () => {
    await putLimit(db(), 'account', account);
    await putQueue(db(), 'q', usesAccount, zero);
    expect(await deleteLimit(db(), 'account')).toEqual({ kind: 'in_use' });
    await putQueue(db(), 'q', defaultQueueSettings, zero);
    expect(await deleteLimit(db(), 'account')).toMatchObject({ kind: 'deleted' });
  });

  it('a queue can not use one that is not there', async () => {
    await expect(putQueue(db(), 'q', usesAccount, zero)).rejects.toMatchObject({
      code: 'invalid_request',
    });
    expect(await findQueue(db(), 'q')).toBeNull();
  });
});

describeOnPostgres('queues on two servers', (postgres) => {
  it('R-RE9: of many servers that see the same failures one opens the circuit', async () => {
    const db = await postgres().openPatient(5);
    const other = await postgres().openPatient(5);
    await ensureQueues(db, ['q']);
    for (let version = 0; version < 20; version += 1) {
      const changes = await Promise.all(
        Array.from({ length: 10 }, (_, index) =>
          changeCircuit(index % 2 === 0 ? db : other, 'q', version, { ...open, slots: index }),
        ),
      );
      const winners = changes.filter((row) => row !== null);
      expect(winners).toHaveLength(1);
      expect(winners[0]?.version).toBe(version + 1);
      expect(await findQueue(db, 'q')).toEqual(winners[0]);
    }
  });

  it('R-CH7: of two puts at once each gets a version, and the greater one stays', async () => {
    const db = await postgres().openPatient();
    const other = await postgres().openPatient();
    for (let round = 0; round < 20; round += 1) {
      const name = `q${String(round % 2)}`;
      const [first, second] = await Promise.all([
        putQueue(db, name, { ...defaultQueueSettings, maxReady: 1 }, zero),
        putQueue(other, name, { ...defaultQueueSettings, maxReady: 2 }, zero),
      ]);
      expect(Math.abs(first.version - second.version)).toBe(1);
      const winner = first.version > second.version ? first : second;
      expect(await findQueue(db, name)).toEqual(winner);
    }
  });

  it('R-CH7: of two puts of a limit at once, beside a delete, the greater version stays', async () => {
    const db = await postgres().openPatient();
    const other = await postgres().openPatient();
    let before = 0;
    for (let round = 0; round < 30; round += 1) {
      const [first, second] = await Promise.all([
        putLimit(db, 'account', { ...account, rate: 1 }),
        putLimit(other, 'account', { ...account, rate: 2 }),
        round % 3 === 0 ? deleteLimit(db, 'account') : null,
      ]);
      const [older, newer] = first.version < second.version ? [first, second] : [second, first];
      expect(older.version).toBeGreaterThan(before);
      expect(newer.version).toBeGreaterThan(older.version);
      before = newer.version;
      const { name, version, ...limit } = newer;
      const [stored] = await findLimitsChanged(db, null);
      if (stored !== undefined || round % 3 !== 0) expect(stored).toEqual({ name, version, limit });
    }
  });

  it('R-CH7: a put of a limit that waits for another has no version yet', async () => {
    const { db } = postgres();
    const other = await postgres().open();
    await db.transaction(async (tx) => {
      const { version } = await putLimit(tx, 'account', account);
      const waiting = putLimit(other, 'another', account);
      await expect(waiting).rejects.toBeInstanceOf(LockedError);
      expect(await db.query('select last_value from sluice.limit_version')).toEqual([
        { last_value: version },
      ]);
    });
  });

  it('a limit that is deleted while a queue is put with it is in use, or the put is refused', async () => {
    const db = await postgres().openPatient();
    const other = await postgres().openPatient();
    for (let round = 0; round < 20; round += 1) {
      await putLimit(db, 'account', account);
      await putQueue(db, 'q', defaultQueueSettings, zero);
      const [deleted, put] = await Promise.allSettled([
        deleteLimit(db, 'account'),
        putQueue(other, 'q', usesAccount, zero),
      ]);
      const isDeleted = deleted.status === 'fulfilled' && deleted.value.kind === 'deleted';
      expect(put.status).toBe(isDeleted ? 'rejected' : 'fulfilled');
    }
  });
});
