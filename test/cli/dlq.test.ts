import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { runCli, startCli } from '../support/cli.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

describe('sluice dlq', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());

  it(
    'R-RE5: says how many, and replays them in as many calls as it takes',
    { timeout: 180_000 },
    async () => {
      const args = ['serve', '--port', '0', '--database-url', database.url, '--log-level', 'warn'];
      const [, url = ''] = await startCli(args).waitForLine(/^Sluice is ready at (http:\S+)$/);
      const replay = async (...options: string[]): Promise<string> => {
        const filter = ['--queue', 'broken', '--code', 'BROKEN', '--url', url];
        const { code, stdout } = await runCli(['dlq', 'replay', ...filter, ...options]);
        expect({ options, code }).toEqual({ options, code: 0 });
        return stdout;
      };
      expect(await replay()).toBe('0 replayed');
      await makeDeadLetters(database.url, 10_001);
      expect(await replay('--per-second', '100', '--dry-run')).toBe(
        '10000 or more would be replayed, over 100 s',
      );
      expect(await replay('--since', '2100-01-01T00:00Z')).toBe('0 replayed');
      const rate = ['--per-second', '1000000', '--priority', 'low'];
      expect(JSON.parse(await replay(...rate, '--json'))).toMatchObject({
        replayed: 10_001,
        next_cursor: null,
      });
      const refused = await runCli(['dlq', 'replay', '--per-second', '0', '--url', url]);
      expect(refused.stderr).toContain('It must be a whole number from 1 to 1000000.');
    },
  );
});

async function makeDeadLetters(url: string, count: number): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(
      `insert into sluice.tasks (id, queue, task_type, priority, status, created_at, eligible_at,
         ended_at, timeout_seconds, max_retries, error)
       select (lpad(to_hex((extract(epoch from now()) * 1000)::bigint), 12, '0')
           || '70008000' || lpad(to_hex(n), 12, '0'))::uuid,
         'broken', 'bad', 1, 'dead_letter', now(), now(), now(), 60, 3,
         '{"code":"BROKEN","message":"","retriable":true}'
       from generate_series(1, $1::int) n`,
      [count],
    );
  } finally {
    await client.end();
  }
}
