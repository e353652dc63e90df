import { Client } from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from './postgres.js';

let databases: TestDatabase[] = [];

beforeAll(async () => {
  databases = await Promise.all([createTestDatabase(), createTestDatabase()]);
});

afterAll(() => Promise.all(databases.map((database) => database.drop())));

it('what one test database holds, the other does not see', async () => {
  const [first, second] = databases.map(({ url }) => new Client({ connectionString: url }));
  if (!first || !second) throw new Error('two databases were asked for');
  await Promise.all([first.connect(), second.connect()]);

  await first.query('create table only_here (id int)');
  const seen = await second.query("select to_regclass('only_here') as found");
  expect(seen.rows).toEqual([{ found: null }]);

  await Promise.all([first.end(), second.end()]);
});
