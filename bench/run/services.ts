import { Client } from 'pg';
import { startPostgres } from '../../test/support/services/postgres-server.js';
import { askRedis, startRedis } from '../../test/support/services/redis-server.js';
import { parentOf, ProcessTree } from '../../lab/shared/process-tree.js';

/** One Postgres and one Redis for everybody, which nobody else uses. */
export interface Services extends AsyncDisposable {
  readonly redisUrl: string;
  readonly versions: Readonly<Record<'Postgres' | 'Redis', string>>;
  readonly processes: readonly ProcessTree[];
  /** An empty database and an empty Redis, and nothing of the last one's left to write. */
  renew(): Promise<{ readonly postgresUrl: string }>;
}

const database = 'bench';

/** Postgres is durable, as in production. Redis writes nothing to disk: so it is fastest. */
export async function startServices(): Promise<Services> {
  const [postgres, redis] = await Promise.all([
    startPostgres({ durable: true, mortal: true }),
    startRedis(),
  ]);
  const redisInfo = String(await askRedis(redis.url, 'info', 'server'));
  const redisField = (name: string) => new RegExp(`^${name}:(.*)$`, 'm').exec(redisInfo)?.[1] ?? '';
  const { version, pid } = await onServer(postgres.url, async (client) => {
    const { rows } = await client.query<{ version: string; pid: number }>(
      `select current_setting('server_version') as version, pg_backend_pid() as pid`,
    );
    // Whoever packaged it adds a name of theirs.
    const [number = ''] = rows[0]?.version.split(' ') ?? [];
    return { version: number, pid: parentOf(rows[0]?.pid ?? 0) };
  });
  return {
    redisUrl: redis.url,
    versions: { Postgres: version, Redis: redisField('redis_version').trim() },
    processes: [new ProcessTree(pid), new ProcessTree(Number(redisField('process_id')))],
    renew: async () => {
      await onServer(postgres.url, async (client) => {
        await client.query(`drop database if exists ${database} with (force)`);
        await client.query(`create database ${database}`);
        await client.query('checkpoint');
      });
      await askRedis(redis.url, 'flushall');
      const url = new URL(postgres.url);
      url.pathname = `/${database}`;
      return { postgresUrl: url.href };
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all([postgres.stop(), redis.stop()]);
    },
  };
}

async function onServer<Answer>(
  url: string,
  work: (client: Client) => Promise<Answer>,
): Promise<Answer> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
