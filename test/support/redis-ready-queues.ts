import { RedisBus } from '../../src/ready/redis/bus.js';
import { openRedis } from '../../src/ready/redis/connection.js';
import { RedisReadyQueue } from '../../src/ready/redis/redis-ready-queue.js';
import type { Clock } from '../../src/runtime/clock.js';
import { silentLog } from '../../src/runtime/log.js';
import { createTestRedis } from './redis.js';

export interface TestReadyQueues {
  /** Each as if in a server of its own. */
  readonly queues: readonly RedisReadyQueue[];
  /** Everything under their prefix is gone. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** Several servers' ready queues over one Redis and one prefix, on a clock that is turned by hand. */
export async function openTestReadyQueues(count: number, clock: Clock): Promise<TestReadyQueues> {
  const redis = await createTestRedis();
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const connection = await openRedis(redis.url, silentLog);
      const bus = new RedisBus(connection, redis.prefix);
      const { prefix } = redis;
      const queue = new RedisReadyQueue({ connection, bus, prefix, clock, log: silentLog });
      return { connection, bus, queue };
    }),
  );
  return {
    queues: servers.map(({ queue }) => queue),
    flush: async () => {
      const keys = await redis.client.keys(`${redis.prefix}*`);
      await redis.client.unlink(...keys);
    },
    close: async () => {
      for (const { queue, bus, connection } of servers) {
        await queue.close();
        await bus.close();
        await connection.close();
      }
      await redis.close();
    },
  };
}
