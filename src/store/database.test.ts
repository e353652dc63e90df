import { expect, it } from 'vitest';

import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import { startPooler } from '../../test/support/pooler.js';
import { until } from '../../test/support/until.js';
import { DatabaseAwayError, LockedError, prepared, type Database } from './database.js';
import { openPgDatabase } from './pg-database.js';

describeOnEveryDatabase('a database', (db) => {
  it('R-ST2: parameters and columns mean the same on every driver', async () => {
    const instant = new Date('2026-02-03T04:05:06.789Z');
    const texts = ['plain', 'a"b', 'c,d', 'e\\f', '', 'null', '{}'];
    const json =
      '{"nul":"\\u0000","lone":"\\ud800","keys":{"b":1,"a":2},"big":12345678901234567890}';
    const document: unknown = JSON.parse(json);
    const [row] = await db().query(
      `select $1::text[] as texts, $2::uuid[] as ids, $3::timestamptz[] as instants,
         $4::text[]::json[] as documents, $5::bigint as seq, $6::float8[] as numbers,
         $7::boolean[] as flags, $8::json as document, $9::text[] as missing, $10::timestamptz as at`,
      [
        texts,
        ['019b5a00-0000-7000-8000-000000000000'],
        [instant, null],
        [json, null, '"x"'],
        9_007_199_254_740_991,
        [1.5, null],
        [true, null],
        json,
        null,
        instant,
      ],
    );
    expect(row).toEqual({
      texts,
      ids: ['019b5a00-0000-7000-8000-000000000000'],
      instants: [instant, null],
      documents: [document, null, 'x'],
      seq: 9_007_199_254_740_991,
      numbers: [1.5, null],
      flags: [true, null],
      document,
      missing: null,
      at: instant,
    });
  });

  it('a transaction that throws changes nothing, and the connection is good afterwards', async () => {
    const boom = new Error('boom');
    const failing = db().transaction(async (tx) => {
      await tx.query(`insert into sluice.workflows (id) values ('w')`);
      throw boom;
    });
    await expect(failing).rejects.toBe(boom);
    expect(await db().query('select * from sluice.workflows')).toEqual([]);
  });

  it('a failed statement inside a transaction rolls it back', async () => {
    const failing = db().transaction(async (tx) => {
      await tx.query(`insert into sluice.workflows (id) values ('w')`);
      await tx.query('select 1 / 0');
    });
    await expect(failing).rejects.toThrow('division by zero');
    expect(await db().query('select * from sluice.workflows')).toEqual([]);
  });

  it('a sequential scan, a hash join and a merge join are the last resort', async () => {
    const rows = await db().query<{ setting: string }>(
      `select setting from pg_settings
       where name in ('enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'jit')`,
    );
    expect(rows.map((row) => row.setting)).toEqual(['off', 'off', 'off', 'off']);
  });

  it('statements one after the other leave timers their turn', async () => {
    const timer = AbortSignal.timeout(1);
    for (let statement = 0; statement < 2_000 && !timer.aborted; statement += 1) {
      await db().query('select');
    }
    expect(timer.aborted).toBe(true);
  });

  it('knows the clock of the database', async () => {
    const [row] = await db().query<{ now: Date }>('select clock_timestamp() as now');
    expect(Math.abs(db().nowMs() - (row?.now.getTime() ?? 0))).toBeLessThan(60_000);
  });
});

describeOnPostgres('a pool', (postgres) => {
  it('a locked row is a LockedError, soon, and not an endless wait', async () => {
    const { db } = postgres();
    await db.query(`insert into sluice.workflows (id) values ('w')`);
    await db.transaction(async (tx) => {
      await tx.query(`select from sluice.workflows where id = 'w' for update`);
      await expect(db.query(`delete from sluice.workflows`)).rejects.toBeInstanceOf(LockedError);
    });
  });

  it('a connection cut under a statement is a DatabaseAwayError; the next call gets a new one', async () => {
    const db = await postgres().open({ poolSize: 1 });
    const pid = await pidOf(db);
    const outcome = expect(db.query('select pg_sleep(30)')).rejects.toBeInstanceOf(
      DatabaseAwayError,
    );
    await until('the statement to run', () => isSleeping(pid));
    await postgres().db.query('select pg_terminate_backend($1)', [pid]);
    await outcome;
    expect(await pidOf(db)).not.toBe(pid);
  });

  it('a connection cut while idle is told to onError; the next call gets a new one', async () => {
    const broken: Error[] = [];
    const db = await postgres().open({ poolSize: 1, onError: (error) => broken.push(error) });
    const pid = await pidOf(db);
    await postgres().db.query('select pg_terminate_backend($1)', [pid]);
    await until('the error', () => broken.length > 0);
    expect(await pidOf(db)).not.toBe(pid);
  });

  it('a server that is not there is a DatabaseAwayError at open', async () => {
    const opening = openPgDatabase({ url: 'postgres://me:secret@localhost:1/none' });
    await expect(opening).rejects.toBeInstanceOf(DatabaseAwayError);
    await expect(opening).rejects.toThrow(
      /^Postgres can't be reached at postgres:\/\/me:\*\*\*@localhost:1\/none: .*ECONNREFUSED.*\n.*DATABASE_URL/,
    );
  });

  it('what is asked often is prepared, and answers as before', async () => {
    const text = prepared('select $1::int as n');
    const db = await postgres().open({ poolSize: 1 });
    for (let n = 0; n < 8; n += 1) {
      expect(await db.query(text, [n])).toEqual([{ n }]);
    }
    const look = prepared('select statement from pg_prepared_statements where statement = $1');
    expect(await db.query(look, [text])).toEqual([{ statement: text }]);
  });

  it('what is asked often is planned once, also when its values would make a better plan', async () => {
    const text = prepared('select n from unnest($1::int[]) as n where n > $2');
    const db = await postgres().open();
    for (let n = 0; n < 8; n += 1) await db.query(text, ['{1,2}', n]);
    const look = prepared(
      `select generic_plans as once, custom_plans as anew
       from pg_prepared_statements where statement = $1`,
    );
    expect(await db.query(look, [text])).toEqual([{ once: 8, anew: 0 }]);
    expect(await db.query('show plan_cache_mode')).toEqual([{ plan_cache_mode: 'auto' }]);
  });

  it('a statement that two places prepare has one name, and shares it with no other', async () => {
    const [one, again, other] = [
      'select $1::int as a',
      'select $1::int as a',
      'select $1::int as b',
    ];
    const texts = [one, again, other].map(prepared);
    const db = await postgres().open({ poolSize: 1 });
    const answers = [];
    for (const text of texts) answers.push(...(await db.query(text, [1])));
    expect(answers).toEqual([{ a: 1 }, { a: 1 }, { b: 1 }]);
  });

  it('a prepared statement whose columns changed under it fails once, as when Postgres is away', async () => {
    const text = prepared('select n from sluice.changing where n >= $1');
    const db = await postgres().open({ poolSize: 1 });
    await db.query('create table sluice.changing (n integer)');
    try {
      await db.query('insert into sluice.changing values (1)');
      expect(await db.query(text, [0])).toEqual([{ n: 1 }]);
      await postgres().db.query('alter table sluice.changing alter column n type bigint');
      await expect(db.query(text, [0])).rejects.toBeInstanceOf(DatabaseAwayError);
      expect(await db.query(text, [0])).toEqual([{ n: 1 }]);
    } finally {
      await db.query('drop table sluice.changing');
    }
  });

  it('nothing is prepared behind a pooler, whose next call may reach another connection', async () => {
    const text = prepared('select $1::text as word');
    await using pooler = await startPooler(postgres().url);
    const db = await openPgDatabase({ url: pooler.url, poolSize: 1 });
    try {
      expect(await db.query(text, ['hello'])).toEqual([{ word: 'hello' }]);
      const look = prepared('select statement from pg_prepared_statements');
      expect(await db.query(look, [])).toEqual([]);
    } finally {
      await db.close();
    }
  });

  it('close may be called twice', async () => {
    const db = await postgres().open();
    await db.close();
    await db.close();
  });

  async function pidOf(db: Database): Promise<number> {
    const [row] = await db.query<{ pid: number }>('select pg_backend_pid() as pid');
    return row?.pid ?? NaN;
  }

  async function isSleeping(pid: number): Promise<boolean> {
    const [row] = await postgres().db.query<{ query: string; state: string }>(
      'select query, state from pg_stat_activity where pid = $1',
      [pid],
    );
    return row?.state === 'active' && row.query.includes('pg_sleep(30)');
  }
});
