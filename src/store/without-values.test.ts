import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freshPglite } from '../../test/support/pglite.js';
import { createEmptyDatabase, type TestDatabase } from '../../test/support/postgres.js';
import type { Database } from './database.js';
import { openPgDatabase } from './pg-database.js';
import { openPgliteDatabase } from './pglite-database.js';

const canary = 'canary-7f3a';

describe.each(['pg', 'pglite'])('R-AD6: an error of Postgres on %s', (driver) => {
  let database: TestDatabase | null = null;
  let db: Database;
  beforeAll(async () => {
    database = driver === 'pg' ? await createEmptyDatabase() : null;
    db =
      database === null
        ? await openPgliteDatabase(freshPglite())
        : await openPgDatabase({ url: database.url });
    await db.run('create table kept (note text constraint no_canary check (length(note) < 5))');
  });
  afterAll(async () => {
    await db.close();
    await database?.drop();
  });

  it.each([
    ['a row', 'insert into kept values ($1)', '23514', 'no_canary'],
    ['a value', 'select $1::uuid', '22P02', 'uuid'],
    ['JSON', 'select $1::json', '22P02', 'json'],
  ])('holds nothing of %s that it is about', async (_name, sql, code, said) => {
    const error: unknown = await db
      .query(sql, [`"${canary}" "`])
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code });
    const shown = inspect(error, { depth: 5, showHidden: true });
    expect(shown).toContain(said);
    expect(shown).not.toContain(canary);
    const inside = db.transaction((tx) => tx.query(sql, [`"${canary}" "`]));
    expect(inspect(await inside.catch((thrown: unknown) => thrown))).not.toContain(canary);
  });
});
