import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MovingSlot } from '../../../test/support/services/move-slot.js';
import {
  startRedisCluster,
  type RunningRedisCluster,
} from '../../../test/support/services/redis-cluster.js';
import { until } from '../../../test/support/until.js';
import { LocalBus } from '../../runtime/bus.js';
import { silentLog } from '../../runtime/log.js';
import { anyWork, blank, offerMaker } from '../workbench.contract.js';
import { openRedis, type RedisConnection } from './connection.js';
import { RedisReadyQueue } from './redis-ready-queue.js';

const prefix = 'sluice:{resharded}:';

describe('a slot that moves to another node of a cluster', () => {
  let cluster: RunningRedisCluster;
  let moving: MovingSlot;
  let connection: RedisConnection;
  let queue: RedisReadyQueue;
  let generation = 0;

  beforeAll(async () => {
    cluster = await startRedisCluster(2);
    moving = await MovingSlot.of(cluster, prefix);
    connection = await openRedis(cluster.url, silentLog);
    queue = new RedisReadyQueue({ connection, bus: new LocalBus(), prefix, log: silentLog });
  });

  afterAll(async () => {
    await queue.close();
    await connection.close();
    moving.close();
    await cluster.stop();
  });

  async function restore(): Promise<void> {
    generation += 1;
    expect(await queue.beginRestore(generation)).toBe('yours');
    expect(await queue.restore({ ...blank, generation })).toBe(true);
  }

  /** All that a server may ask for while the slot is open. */
  async function useIt(): Promise<void> {
    const offer = offerMaker();
    await Promise.all([
      queue.take(anyWork),
      queue.offer([offer({ queue: 'new' })]),
      queue.configure({ limits: [], queues: [] }),
      queue.beginRestore(generation + 1),
      queue.live('q'),
    ]);
  }

  it('R-HA5: is not written to before it belongs to that node, whichever key has moved', async () => {
    await restore();
    const offer = offerMaker();
    await queue.offer(Array.from({ length: 30 }, (_, n) => offer({ queue: `q${n % 10}` })));
    await queue.take({ ...anyWork, count: 5 });

    const keys = await moving.count();
    expect(keys).toBeGreaterThan(10);
    const moved = await moving.move(async (index) => {
      if (index % 4 === 0) await useIt();
    });
    expect([moved, await moving.count()]).toEqual([keys, keys]);

    // Contents that another run of a server made are filled anew.
    await until('the new owner to be asked', async () => {
      return (await queue.beginRestore(generation + 1)) === 'yours';
    });
    await restore();
    const after = offer();
    await queue.offer([after]);
    expect(await queue.take(anyWork)).toMatchObject({ entries: [{ taskId: after.taskId }] });
  });
});
