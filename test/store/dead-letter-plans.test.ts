import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { unconfined } from '../../src/domain/confinement.js';
import type { DeadLetterFilter } from '../../src/protocol/dead-letters-api.js';
import { classifyDeadLetters, noteUncounted } from '../../src/store/classify-dead-letters.js';
import { findDeadLetterPatterns } from '../../src/store/dead-letter-patterns.js';
import { findDeadLetters, listDeadLetters } from '../../src/store/dead-letters.js';
import type { Database } from '../../src/store/database.js';
import { maxScannedRows } from '../../src/store/task-walk.js';
import { openPgDatabase } from '../../src/store/pg-database.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { explained } from './explained.js';
import { zero } from './seed.js';

const letters = 30_000;

describe('R-HA3: filters over 30,000 dead letters that were never analyzed', () => {
  let database: TestDatabase;
  let db: Database;

  beforeAll(async () => {
    database = await createTestDatabase();
    db = await openPgDatabase({ url: database.url });
    await db.query(
      `insert into sluice.tasks
         (id, queue, task_type, priority, status, created_at, eligible_at, ended_at,
          timeout_seconds, max_retries, error)
       select (lpad(to_hex(n), 12, '0') || repeat('0', 20))::uuid, 'q' || n % 2, 't' || n % 2, 1,
         'dead_letter', $1, $1, $1, 600, 3,
         ('{"code":"C' || n % 2 || '","message":"it broke","retriable":true}')::json
       from generate_series(1, ${letters}) n`,
      [zero],
    );
  });
  afterAll(async () => {
    await db.close();
    await database.drop();
  });

  it('R-OB10: patterns are read from counts, not from the dead letters', async () => {
    let cursor: string | null = null;
    do cursor = await noteUncounted(db, cursor, 5_000);
    while (cursor !== null);
    while ((await classifyDeadLetters(db, 5_000)) !== 0);
    const pages = await pagesOf((on) => findDeadLetterPatterns(on, unconfined, zero.getTime()));
    expect(pages).toBeLessThan(50);
    const [pattern] = await findDeadLetterPatterns(db, unconfined, zero.getTime());
    expect(pattern).toMatchObject({ count: letters / 2, message: 'it broke' });
    const { id = '' } = pattern ?? {};
    const found = await pagesOf((on) => findDeadLetters(on, { pattern: id }, 100));
    expect(found).toBeLessThan(5 * maxScannedRows);
    expect(await pagesOf((on) => findDeadLetters(on, { pattern: 'none' }, 100))).toBeLessThan(50);
  });

  const none: [string, DeadLetterFilter][] = [
    ['a code', { code: 'none' }],
    ['a queue', { queue: 'none' }],
    ['a type', { taskType: 'none' }],
    ['a code in a queue', { queue: 'q1', code: 'none' }],
  ];

  it.each(none)('%s that none has is answered by its index', async (_name, filter) => {
    expect(await pagesOf((on) => listDeadLetters(on, filter, {}, zero))).toBeLessThan(50);
    expect(await pagesOf((on) => findDeadLetters(on, filter, 100))).toBeLessThan(50);
  });

  it('a filter that matches nothing of what its index holds ends early, with a cursor', async () => {
    const filter = { code: 'C0', queue: 'q1' };
    // Two walks of 10,000 rows: one for the page, one for the count.
    const pages = await pagesOf((on) => listDeadLetters(on, filter, {}, zero));
    expect(pages).toBeLessThan(3 * maxScannedRows);
    let cursor: string | null = null;
    let calls = 0;
    do {
      const page: Awaited<ReturnType<typeof listDeadLetters>> = await listDeadLetters(
        db,
        filter,
        cursor === null ? {} : { cursor },
        zero,
      );
      expect(page).toMatchObject({ items: [], totalCount: 0 });
      cursor = page.nextCursor;
      calls += 1;
    } while (cursor !== null);
    expect(calls).toBe(2);
    const found = await findDeadLetters(db, filter, 100);
    expect(found).toMatchObject({ taskIds: [], next: expect.any(String) as string });
  });

  it('the count is exact up to 10,000, and then a lower bound', async () => {
    expect((await listDeadLetters(db, {}, {}, zero)).totalCount).toBe(maxScannedRows);
    expect((await listDeadLetters(db, { code: 'C1' }, {}, zero)).totalCount).toBe(maxScannedRows);
  });

  async function pagesOf(read: (on: Database) => Promise<unknown>): Promise<number> {
    const { db: watched, plans } = explained(db);
    await read(watched);
    return plans.reduce((sum, { pages }) => sum + pages, 0);
  }
});
