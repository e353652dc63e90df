import type { TestProject } from 'vitest/node';
import { isDistStale } from './dist-freshness.js';
import { dumpEmptyPglite } from './services/pglite-dump.js';
import { startPostgres } from './services/postgres-server.js';
import { startSharedRedis } from './services/redis-server.js';

declare module 'vitest' {
  interface ProvidedContext {
    postgresUrl: string;
    redisUrl: string;
    pgliteDump: string;
    distIsStale: boolean;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  project.provide('distIsStale', isDistStale());
  const postgres = await startPostgres();
  project.provide('postgresUrl', postgres.url);
  const redis = await startSharedRedis();
  project.provide('redisUrl', redis.url);
  const dump = await dumpEmptyPglite();
  project.provide('pgliteDump', dump.path);
  return async () => {
    dump.remove();
    await redis.stop();
    await postgres.stop();
  };
}
