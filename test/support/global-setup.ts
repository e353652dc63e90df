import type { TestProject } from 'vitest/node';
import { isDistStale } from './dist-freshness.js';
import { dumpEmptyPglite } from './services/pglite-dump.js';
import { startPostgres } from './services/postgres-server.js';

declare module 'vitest' {
  interface ProvidedContext {
    postgresUrl: string;
    pgliteDump: string;
    distIsStale: boolean;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  project.provide('distIsStale', isDistStale());
  const postgres = await startPostgres();
  project.provide('postgresUrl', postgres.url);
  const dump = await dumpEmptyPglite();
  project.provide('pgliteDump', dump.path);
  return async () => {
    dump.remove();
    await postgres.stop();
  };
}
