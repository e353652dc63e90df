import { expect, it } from 'vitest';

import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import { DatabaseAwayError, LockedError } from './database.js';
import { openPgDatabase } from './pg-database.js';

const outages = [
  ...['53000', '53100', '53200', '53300', '53400'],
  ...['57000', '57014', '57P01', '57P02', '57P03', '57P04', '57P05', '25006', '58030', '08006'],
];

describeOnEveryDatabase('what errors of Postgres mean', (db) => {
  const raise = (code: string) =>
    `do $$ begin raise exception 'of host db1' using errcode = '${code}'; end $$`;

  it.each(outages)(
    'R-HA2: %s is an outage, and our sentence for it names no host',
    async (code) => {
      const thrown = await db()
        .run(raise(code))
        .catch((error: unknown) => error);
      expect(thrown).toBeInstanceOf(DatabaseAwayError);
      expect(thrown).toMatchObject({ message: expect.not.stringContaining('db1') as string });
      expect(await db().query('select 1 as n')).toEqual([{ n: 1 }]);
    },
  );

  it.each(['55P03', '40P01', '40001'])('%s means that nothing was written', async (code) => {
    await expect(db().run(raise(code))).rejects.toBeInstanceOf(LockedError);
  });

  it('R-HA2: a write where only reads are allowed is an outage, by itself and in a transaction', async () => {
    const write = `insert into sluice.limits (name, unit, rate, per_seconds) values ('l', 'u', 1, 1)`;
    const refused = db().transaction(async (tx) => {
      await tx.query('set transaction read only');
      await tx.query(write);
    });
    await expect(refused).rejects.toMatchObject({
      name: 'DatabaseAwayError',
      message: 'Postgres is read-only: it is a replica, or a failover is under way',
    });
  });

  it('what is no outage stays what it is', async () => {
    await expect(db().query('select 1 / $1::integer', [0])).rejects.toMatchObject({
      code: '22012',
    });
  });
});

describeOnPostgres('outages that Postgres itself makes', (postgres) => {
  it('R-HA2: no connection left is an outage', async () => {
    const { db, url } = postgres();
    const role = `limited_${String(process.pid)}`;
    await db.run(`create role ${role} login connection limit 0`);
    const limited = new URL(url);
    limited.username = role;
    const opening = openPgDatabase({ url: limited.href });
    await expect(opening).rejects.toMatchObject({ cause: { code: '53300' } });
    await expect(opening).rejects.toBeInstanceOf(DatabaseAwayError);
    await db.run(`drop role ${role}`);
  });

  it('R-HA2: a statement that takes too long is an outage, and its connection stays', async () => {
    const db = await postgres().open({ poolSize: 1 });
    const pidSql = 'select pg_backend_pid() as pid';
    const before = await db.query(pidSql);
    const slow = db.transaction(async (tx) => {
      await tx.query(`set local statement_timeout = '10ms'`);
      await tx.query('select pg_sleep(10)');
    });
    await expect(slow).rejects.toMatchObject({ name: 'DatabaseAwayError' });
    expect(await db.query(pidSql)).toEqual(before);
  });
});
