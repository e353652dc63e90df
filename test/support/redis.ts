import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { inject } from 'vitest';

export interface TestRedis {
  readonly url: string;
  /** Of keys and channels that nobody else uses: files run at the same time on one server. */
  readonly prefix: string;
  readonly client: Redis;
  /** Removes what is under the prefix. */
  close(): Promise<void>;
}

export async function createTestRedis(): Promise<TestRedis> {
  const url = inject('redisUrl');
  const prefix = `sluice:{${randomBytes(6).toString('hex')}}:`;
  const client = new Redis(url);
  await client.ping();
  return {
    url,
    prefix,
    client,
    close: async () => {
      if (!process.env.KEEP_TEST_DB) await removeAll(client, prefix);
      await client.quit();
    },
  };
}

async function removeAll(client: Redis, prefix: string): Promise<void> {
  for await (const keys of client.scanStream({ match: `${prefix}*`, count: 1_000 })) {
    if ((keys as string[]).length > 0) await client.unlink(keys as string[]);
  }
}
