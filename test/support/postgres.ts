import { randomBytes } from 'node:crypto';
import { basename } from 'node:path';
import { Client } from 'pg';
import { expect, inject } from 'vitest';

export interface TestDatabase {
  url: string;
  drop: () => Promise<void>;
}

/** An empty database of its own for a test file: files run at the same time on one server. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const serverUrl = inject('postgresUrl');
  const name = uniqueName();
  await runOn(serverUrl, `create database ${name}`);

  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    drop: async () => {
      if (process.env.KEEP_TEST_DB) {
        process.stderr.write(`kept ${url.href}\n`);
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

async function runOn(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
