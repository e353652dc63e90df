import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { createEmptyDatabase, type TestDatabase } from '../../test/support/postgres.js';
import { createTestRole, type TestRole } from '../../test/support/roles.js';
import { startPgBouncer } from '../../test/support/services/pgbouncer.js';
import { inDatabase, runOn } from '../../test/support/services/postgres-statement.js';
import type { RunningServer } from '../../test/support/services/throw-away-server.js';
import type { Database } from './database.js';
import { openPgDatabase } from './pg-database.js';

/** A setting, a value that would break something, and a question whose answer shows which one is in force. */
const badlySet: readonly (readonly [string, string, string, unknown[], unknown])[] = [
  [
    'DateStyle',
    `'SQL, DMY'`,
    `select '2026-02-03T04:05:06.789Z'::timestamptz as x`,
    [],
    new Date('2026-02-03T04:05:06.789Z'),
  ],
  ['IntervalStyle', 'iso_8601', `select interval '90 seconds' || '' as x`, [], '00:01:30'],
  [
    'TimeZone',
    `'Asia/Kolkata'`,
    `select '2026-01-31T20:00:00Z'::timestamptz::date::text as x`,
    [],
    '2026-01-31',
  ],
  ['extra_float_digits', '-15', 'select 0.1::float8 + 0.2::float8 as x', [], 0.1 + 0.2],
  ['bytea_output', 'escape', `select $1::bytea::text as x`, [Buffer.from([92, 0])], '\\x5c00'],
  ['standard_conforming_strings', 'off', `select length('a\\b') as x`, [], 3],
  ['search_path', 'other, pg_catalog', `select lower('A') as x`, [], 'a'],
  ['client_encoding', 'LATIN1', 'select $1::text as x', ['ü 火 🌊'], 'ü 火 🌊'],
  ['array_nulls', 'off', 'select $1::text[] as x', [[null, 'a']], [null, 'a']],
  ['statement_timeout', `'20ms'`, `select 1 as x from pg_sleep(0.1)`, [], 1],
  ['lock_timeout', `'7s'`, `select current_setting('lock_timeout') as x`, [], '200ms'],
  ['enable_seqscan', 'on', `select current_setting('enable_seqscan') as x`, [], 'off'],
  ['enable_hashjoin', 'on', `select current_setting('enable_hashjoin') as x`, [], 'off'],
  ['enable_indexscan', 'off', `select current_setting('enable_indexscan') as x`, [], 'on'],
  ['enable_indexonlyscan', 'off', `select current_setting('enable_indexonlyscan') as x`, [], 'on'],
  ['enable_bitmapscan', 'off', `select current_setting('enable_bitmapscan') as x`, [], 'on'],
  ['enable_nestloop', 'off', `select current_setting('enable_nestloop') as x`, [], 'on'],
  [
    'enable_partition_pruning',
    'off',
    `select current_setting('enable_partition_pruning') as x`,
    [],
    'on',
  ],
  ['jit', 'on', `select current_setting('jit') as x`, [], 'off'],
  [
    'idle_in_transaction_session_timeout',
    `'20ms'`,
    `select current_setting('idle_in_transaction_session_timeout') as x`,
    [],
    '1min',
  ],
];

let database: TestDatabase;
let role: TestRole;
beforeAll(async () => {
  database = await createEmptyDatabase();
  role = await createTestRole(database.url);
  await runOn(
    database.url,
    `create schema other authorization ${role.name};
     create function other.lower(text) returns text language sql as $$ select 'shadowed'::text $$;
     grant all on schema other to public;`,
  );
});
afterAll(async () => {
  await role.drop();
  await database.drop();
});

async function withDatabase<T>(url: string, work: (db: Database) => Promise<T>): Promise<T> {
  const db = await openPgDatabase({ url, poolSize: 1 });
  try {
    return await work(db);
  } finally {
    await db.close();
  }
}

async function ask(db: Database, text: string, values: unknown[]): Promise<unknown> {
  const [row] = await db.query<{ x: unknown }>(text, values);
  return row?.x;
}

describe('R-ST2: what a role sets badly, straight to Postgres', () => {
  it.each(badlySet)('%s = %s', async (name, value, text, values, expected) => {
    await role.set({ [name]: value });
    const answers = await withDatabase(role.url, async (db) => [
      await ask(db, text, values),
      await db.transaction(async (tx) => (await tx.query<{ x: unknown }>(text, values))[0]?.x),
    ]);
    expect(answers).toEqual([expected, expected]);
  });

  it('default_transaction_isolation = serializable', async () => {
    await role.set({ default_transaction_isolation: 'serializable' });
    const text = `select current_setting('transaction_isolation') as x`;
    expect(await withDatabase(role.url, (db) => ask(db, text, []))).toBe('read committed');
  });

  it('idle_session_timeout = 50 ms: a connection that waits is not cut', async () => {
    await role.set({ idle_session_timeout: `'50ms'` });
    const text = 'select pg_backend_pid() as x';
    await withDatabase(role.url, async (db) => {
      const before = await ask(db, text, []);
      await new Promise((resolve) => setTimeout(resolve, 200));
      expect(await ask(db, text, [])).toBe(before);
    });
  });
});

describe('R-ST2: what a role sets badly, behind PgBouncer in transaction mode', () => {
  let pooler: RunningServer;
  beforeAll(async () => {
    pooler = await startPgBouncer(role.url, { poolMode: 'transaction' });
  });
  afterAll(() => pooler.stop());

  it.each(badlySet)('%s = %s', async (name, value, text, values, expected) => {
    await role.set({ [name]: value });
    await endServerConnections();
    const answers = await withDatabase(pooler.url, async (db) => [
      await ask(db, text, values),
      await db.transaction(async (tx) => (await tx.query<{ x: unknown }>(text, values))[0]?.x),
    ]);
    expect(answers).toEqual([expected, expected]);
  });

  it('no setting of ours is left on the connections that others share', async () => {
    await role.set({});
    await endServerConnections();
    const all = 'select name, setting from pg_settings order by name';
    const before = await asAnother(all);
    await withDatabase(pooler.url, async (db) => {
      await db.query('select $1::int', [1]);
      await db.transaction((tx) => tx.query('select 1'));
      await db.ordered.query('select $1::int', [1]);
      await db.run('select 1; select 2');
      expect(await asAnother(all)).toEqual(before);
    });
    expect(await asAnother(all)).toEqual(before);
  });

  it('a statement that fails leaves nothing either, and the next one is answered', async () => {
    await withDatabase(pooler.url, async (db) => {
      await expect(db.query('select 1 / $1::int', [0])).rejects.toMatchObject({ code: '22012' });
      expect(await asAnother('show lock_timeout')).toEqual([{ lock_timeout: '0' }]);
      expect(await ask(db, 'select $1::int as x', [3])).toBe(3);
    });
  });

  async function asAnother(text: string): Promise<unknown[]> {
    const client = new pg.Client({ connectionString: pooler.url, application_name: 'another' });
    await client.connect();
    try {
      return (await client.query(text)).rows as unknown[];
    } finally {
      await client.end();
    }
  }

  /** New ones have what the role sets now. */
  function endServerConnections(): Promise<void> {
    return runOn(inDatabase(pooler.url, 'pgbouncer'), 'reconnect');
  }
});
