import { Client } from 'pg';
import { startPostgres } from '../../test/support/services/postgres-server.js';
import { askRedis, startRedis } from '../../test/support/services/redis-server.js';
import { parentOf, ProcessTree } from '../../lab/shared/process-tree.js';

/** One Postgres and two Redis servers that only the contenders use. */
export interface Services extends AsyncDisposable {
  /** Writes nothing to disk. */
  readonly redisUrl: string;
  /** Writes each command to disk before it answers: the promise of Postgres's commit. */
  readonly durableRedisUrl: string;
  readonly versions: Readonly<Record<'Postgres' | 'Redis', string>>;
  readonly processes: readonly ProcessTree[];
  /** Empties the database and both Redis servers, and leaves nothing of the last run to be written. */
  renew(): Promise<{ readonly postgresUrl: string }>;
}

const database = 'bench';

const durably = ['--appendonly', 'yes', '--appendfsync', 'always'];

/** Postgres runs with its stock settings: a commit is on disk. */
export async function startServices(): Promise<Services> {
  const [postgres, redis, durableRedis] = await Promise.all([
    startPostgres({ durable: true, mortal: true }),
    startRedis(),
    startRedis({ args: durably }),
  ]);
  const facts = await Promise.all([redis, durableRedis].map(({ url }) => redisFacts(url)));
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
    durableRedisUrl: durableRedis.url,
    versions: { Postgres: version, Redis: facts[0]?.version ?? '' },
    processes: [pid, ...facts.map((one) => one.pid)].map((one) => new ProcessTree(one)),
    renew: async () => {
      await onServer(postgres.url, async (client) => {
        await client.query(`drop database if exists ${database} with (force)`);
        await client.query(`create database ${database}`);
        await client.query('checkpoint');
      });
      await Promise.all([redis, durableRedis].map(({ url }) => askRedis(url, 'flushall')));
      const url = new URL(postgres.url);
      url.pathname = `/${database}`;
      return { postgresUrl: url.href };
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all([postgres.stop(), redis.stop(), durableRedis.stop()]);
    },
  };
}

async function redisFacts(
  url: string,
): Promise<{ readonly version: string; readonly pid: number }> {
  const info = String(await askRedis(url, 'info', 'server'));
  const field = (name: string) => new RegExp(`^${name}:(.*)$`, 'm').exec(info)?.[1]?.trim() ?? '';
  return { version: field('redis_version'), pid: Number(field('process_id')) };
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
