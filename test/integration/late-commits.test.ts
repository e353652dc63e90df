import { expect, it } from 'vitest';

import { ApiKeys } from '../../src/engine/api-keys.js';
import { Checkpoints } from '../../src/engine/checkpoints.js';
import { QueueDirectory } from '../../src/engine/queue-directory.js';
import { MemoryReadyQueue } from '../../src/ready/memory/memory-ready-queue.js';
import { systemClock } from '../../src/runtime/clock.js';
import { deleteLimit, putLimit } from '../../src/store/limits.js';
import { describeOnPostgres as describeOnStore } from '../store/support.js';
import { until } from '../support/until.js';
import { contextOf } from './engine-parts.js';
import { describeOnPostgres, freshQueue, TestWorker } from './support.js';

const soon = { deadlineMs: 10_000 };
const quickly = { settings: { rereadIntervalMs: 50 } };
/** What a transaction that began so long before it committed writes as the instant of its change. */
const longAgo = `now() - interval '2 minutes'`;

describeOnStore('a limit', (postgres) => {
  it('R-CH7: a deletion that is heard of after a later PUT leaves the limit there', async () => {
    const { db } = postgres();
    const context = contextOf(db, new MemoryReadyQueue({ clock: systemClock }));
    const directory = new QueueDirectory(context, new Checkpoints(context));
    const limit = { unit: 'requests', rate: 1, perSeconds: 60, burst: null };
    await putLimit(db, 'shared', limit);
    await directory.load();
    const deletion = await deleteLimit(db, 'shared');
    if (deletion.kind !== 'deleted') throw new Error('it was there');
    await putLimit(db, 'shared', { ...limit, rate: 2 });
    await directory.refresh();
    directory.limitDeleted('shared', deletion.version);
    expect(directory.configuration().limits).toMatchObject([
      { name: 'shared', limit: { rate: 2 } },
    ]);
    const again = await deleteLimit(db, 'shared');
    if (again.kind !== 'deleted') throw new Error('it was there');
    directory.limitDeleted('shared', again.version);
    expect(directory.configuration().limits).toEqual([]);
  });

  it('R-CH7: a deletion that nobody told of is found when all is read', async () => {
    const { db } = postgres();
    const context = contextOf(db, new MemoryReadyQueue({ clock: systemClock }));
    const directory = new QueueDirectory(context, new Checkpoints(context));
    await putLimit(db, 'gone', { unit: 'requests', rate: 1, perSeconds: 60, burst: null });
    await directory.load();
    await deleteLimit(db, 'gone');
    await directory.load();
    expect(directory.configuration().limits).toEqual([]);
  });
});

describeOnStore('a clock of Postgres that was set back', (postgres) => {
  it('R-HA4: keys that are made, revoked or signed in with afterwards are known at once', async () => {
    const { db } = postgres();
    // As this process sees it until it measures the clock again: Postgres is an hour behind.
    const behind = { ...db, nowMs: () => db.nowMs() + 3_600_000 };
    const context = contextOf(behind, new MemoryReadyQueue({ clock: systemClock }));
    const keys = new ApiKeys(context, () => undefined);
    await keys.watch();
    const { id, key } = await keys.createKey({ name: 'a key', scopes: ['read'] });
    expect(await keys.authenticate(key, 'key', true)).toMatchObject({ keyId: id });
    await keys.revokeKey(id);
    expect(await keys.authenticate(key, 'key', true)).toBeNull();
    await keys.stop();
  });
});

describeOnPostgres('changes that commit late', (server) => {
  it('R-HA4: settings of a queue that committed two minutes after they were written are seen', async () => {
    const engine = await server().open(quickly);
    const queue = freshQueue();
    await engine.putQueue(queue, {});
    const worker = await TestWorker.register(engine, { queues: [queue] });
    await server().sql(
      `update sluice.queues set paused = true, version = version + 1, changed_at = ${longAgo}
       where name = $1`,
      [queue],
    );
    await until(
      'the pause to be seen',
      async () => {
        await engine.submit({ taskType: 't', queue });
        return (await worker.look()).length === 0;
      },
      soon,
    );
  });

  it('R-HA4: a revocation that committed two minutes after it was written is seen', async () => {
    const engine = await server().open(quickly);
    await engine.keys.watch();
    const { id, key } = await engine.createKey({ name: 'late', scopes: ['read'] });
    expect(await engine.keys.authenticate(key, 'key', false)).not.toBeNull();
    await server().sql(
      `update sluice.api_keys set revoked_at = now(), changed_at = ${longAgo} where id = $1`,
      [id],
    );
    await until(
      'the key to be refused',
      async () => {
        return (await engine.keys.authenticate(key, 'key', false)) === null;
      },
      soon,
    );
  });
});
