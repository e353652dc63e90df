import type { TestProject } from 'vitest/node';
import { isDistStale } from './dist-freshness.js';
import { preparePglite } from './services/pglite-images.js';
import { startPostgres } from './services/postgres-server.js';
import { preparePostgres, type PostgresTemplates } from './services/postgres-templates.js';
import { startSharedRedis } from './services/redis-server.js';

declare module 'vitest' {
  interface ProvidedContext {
    postgresUrl: string;
    postgresTemplates: PostgresTemplates;
    redisUrl: string;
    /** With the schema, as an engine leaves it at its start; and as tests of the store want it. */
    pgliteImage: string;
    pgliteStoreImage: string;
    distIsStale: boolean;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  project.provide('distIsStale', isDistStale());
  const postgres = await startPostgres();
  project.provide('postgresUrl', postgres.url);
  const templates = await preparePostgres(postgres.url);
  project.provide('postgresTemplates', templates.names);
  const redis = await startSharedRedis();
  project.provide('redisUrl', redis.url);
  const pglite = await preparePglite();
  project.provide('pgliteImage', pglite.paths.engine);
  project.provide('pgliteStoreImage', pglite.paths.store);
  return async () => {
    pglite.remove();
    await redis.stop();
    await templates.remove();
    await postgres.stop();
  };
}
