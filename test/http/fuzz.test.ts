import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { fuzz } from '../../lab/fuzz/run.js';
import { serve, type RunningServer } from '../../src/server/serve.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

const seed = Number(process.env.SLUICE_TEST_SEED ?? '1') || Date.now();

let database: TestDatabase;
let server: RunningServer;
beforeAll(async () => {
  database = await createTestDatabase();
  server = await serve({
    host: '127.0.0.1',
    port: 0,
    database: { kind: 'postgres', url: database.url },
    redisUrl: inject('redisUrl'),
  });
});
afterAll(async () => {
  await server.close();
  await database.drop();
});

it('R-AD7: whatever the OpenAPI document leads to, and worse, is answered as it says', async () => {
  const tally = await fuzz(server.url, { requests: 600, seed, parallel: 4 });
  expect(tally.faults, `with seed ${seed}`).toEqual([]);
  expect(tally.requests).toBeGreaterThanOrEqual(600);
  // Each route was asked, most were reached, and much was refused.
  for (const [route, { statuses }] of tally.routes) expect([route, statuses.size]).not.toContain(0);
  expect(tally.countWhere((status) => status < 300)).toBeGreaterThan(100);
  expect(tally.countWhere((status) => status >= 400)).toBeGreaterThan(100);
});
