import { randomBytes } from 'node:crypto';
import { basename } from 'node:path';
import { expect, inject } from 'vitest';
import { inDatabase, runOn } from './services/postgres-statement.js';
import type { Prepared } from './services/prepared-days.js';

export interface TestDatabase {
  url: string;
  drop: () => Promise<void>;
}

/**
 * A database of its own for a test file: files run at the same time on one server. It has the schema
 * and nothing in it.
 */
export async function createTestDatabase(prepared: Prepared = 'engine'): Promise<TestDatabase> {
  const database = await create(`template ${inject('postgresTemplates')[prepared]}`);
  // By this they tell their keys apart in the Redis that they share.
  await runOn(database.url, 'update sluice.installation set id = gen_random_uuid()');
  return database;
}

/** As before the first start. */
export function createEmptyDatabase(): Promise<TestDatabase> {
  return create('');
}

async function create(template: string): Promise<TestDatabase> {
  const serverUrl = inject('postgresUrl');
  const name = uniqueName();
  await runOn(serverUrl, `create database ${name} ${template}`);
  const url = inDatabase(serverUrl, name);
  return {
    url,
    drop: async () => {
      if (process.env.KEEP_TEST_DB) {
        process.stderr.write(`kept ${url}\n`);
        return;
      }
      await runOn(serverUrl, `drop database ${name} with (force)`);
    },
  };
}

function uniqueName(): string {
  const file = basename(expect.getState().testPath ?? '', '.test.ts');
  const readable = file.replaceAll(/[^a-z0-9]+/g, '_').slice(0, 40);
  return `test_${readable}_${randomBytes(4).toString('hex')}`;
}
