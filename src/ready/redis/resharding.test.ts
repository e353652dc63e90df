import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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
  let nodes: { readonly client: Redis; readonly id: string; readonly port: number }[];
  let connection: RedisConnection;
  let queue: RedisReadyQueue;
  let generation = 0;

  beforeAll(async () => {
    cluster = await startRedisCluster(2);
    nodes = await Promise.all(
      cluster.nodes.map(async ({ url, port }) => {
        const client = new Redis(url);
        return { client, id: await client.cluster('MYID'), port };
      }),
    );
    connection = await openRedis(cluster.url, silentLog);
    queue = new RedisReadyQueue({ connection, bus: new LocalBus(), prefix, log: silentLog });
  });

  afterAll(async () => {
    await queue.close();
    await connection.close();
    for (const { client } of nodes) client.disconnect();
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
    const slot = await connection.client.cluster('KEYSLOT', prefix);
    const { client: first } = nodes[0] ?? {};
    const owned = String(await first?.cluster('NODES'))
      .split('\n')
      .find((line) => line.includes('myself'));
    const isFirst = Number(/ (\d+)-(\d+)/.exec(owned ?? '')?.[2]) >= slot;
    const [from, to] = isFirst ? nodes : nodes.toReversed();
    if (from === undefined || to === undefined) throw new Error('there are two nodes');
    await restore();
    const offer = offerMaker();
    await queue.offer(Array.from({ length: 30 }, (_, n) => offer({ queue: `q${n % 10}` })));
    await queue.take({ ...anyWork, count: 5 });

    await to.client.cluster('SETSLOT', slot, 'IMPORTING', from.id);
    await from.client.cluster('SETSLOT', slot, 'MIGRATING', to.id);
    const keys = await from.client.cluster('GETKEYSINSLOT', slot, 1000);
    expect(keys.length).toBeGreaterThan(10);
    for (const [index, key] of keys.entries()) {
      if (index % 4 === 0) await useIt();
      await from.client.migrate('127.0.0.1', to.port, key, 0, 1000);
    }
    await useIt();
    expect(await from.client.cluster('COUNTKEYSINSLOT', slot)).toBe(0);
    expect(await to.client.cluster('COUNTKEYSINSLOT', slot)).toBe(keys.length);
    await to.client.cluster('SETSLOT', slot, 'NODE', to.id);
    await from.client.cluster('SETSLOT', slot, 'NODE', to.id);

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
