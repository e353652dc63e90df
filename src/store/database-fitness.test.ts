import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, inject, it, onTestFinished } from 'vitest';

import { createEmptyDatabase, type TestDatabase } from '../../test/support/postgres.js';
import { createTestRole, type TestRole } from '../../test/support/roles.js';
import { startPgBouncer } from '../../test/support/services/pgbouncer.js';
import { inDatabase, runOn } from '../../test/support/services/postgres-statement.js';
import { DatabaseUnfitError } from './database.js';
import { migrate, latestVersion } from './migrate.js';
import { openPgDatabase } from './pg-database.js';

let database: TestDatabase;
let role: TestRole;
beforeEach(async () => {
  database = await createEmptyDatabase();
  role = await createTestRole(database.url);
});
afterEach(async () => {
  await role.drop();
  await database.drop();
});

async function start(url: string): Promise<number> {
  const db = await openPgDatabase({ url, poolSize: 1 });
  try {
    return (await migrate(db)).to;
  } finally {
    await db.close();
  }
}

describe('R-ST2: the rights of a role', () => {
  it('a role that owns a schema sluice which was made for it starts, without the right to make one', async () => {
    await runOn(database.url, `create schema sluice authorization ${role.name}`);
    expect(await start(role.url)).toBe(latestVersion);
    expect(await start(role.url)).toBe(latestVersion);
  });

  it('a role that may not make the schema gets the statement that mends it', async () => {
    const mends = `create schema sluice authorization "${role.name}"`;
    const failure = await start(role.url).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(DatabaseUnfitError);
    expect(failure).toMatchObject({ message: expect.stringContaining(mends) as string });
    await runOn(database.url, mends);
    expect(await start(role.url)).toBe(latestVersion);
  });

  it('a role that may not create in the schema gets the statement that mends it', async () => {
    await runOn(database.url, 'create schema sluice');
    const mends = `grant usage, create on schema sluice to "${role.name}"`;
    await expect(start(role.url)).rejects.toThrow(mends);
    await runOn(database.url, mends);
    expect(await start(role.url)).toBe(latestVersion);
  });

  it('tables of another owner are named when they have to change', async () => {
    await runOn(
      database.url,
      `create schema sluice authorization ${role.name}; create table sluice.tasks (id uuid);`,
    );
    await expect(start(role.url)).rejects.toThrow(
      /does not own the table sluice\.tasks, which belongs to "postgres"/,
    );
  });
});

describe('R-ST2: what can not be used is refused at start, with its cause', () => {
  it.each(['SQL_ASCII', 'LATIN1'])('the encoding %s', async (encoding) => {
    const name = `encoded_${randomBytes(4).toString('hex')}`;
    const server = inject('postgresUrl');
    await runOn(
      server,
      `create database ${name} encoding '${encoding}' locale 'C' template template0`,
    );
    onTestFinished(() => runOn(server, `drop database ${name}`));
    await expect(start(inDatabase(server, name))).rejects.toThrow(
      new RegExp(`has the encoding ${encoding}; Sluice needs UTF8`),
    );
  });

  it('a role that may only read', async () => {
    await role.set({ default_transaction_read_only: 'on' });
    await expect(start(role.url)).rejects.toThrow(
      `alter role "${role.name}" set default_transaction_read_only = off`,
    );
  });

  it('a database that may only be read', async () => {
    const name = new URL(database.url).pathname.slice(1);
    const set = (value: string) =>
      runOn(
        inject('postgresUrl'),
        `alter database ${name} set default_transaction_read_only = ${value}`,
      );
    await set('on');
    await expect(start(database.url)).rejects.toThrow(
      `alter database "${name}" set default_transaction_read_only = off`,
    );
    await set('off');
  });

  it('a pooler in statement mode', async () => {
    const pooler = await startPgBouncer(database.url, { poolMode: 'statement' });
    onTestFinished(() => pooler.stop());
    await expect(start(pooler.url)).rejects.toThrow(
      /statement pooling.*\n.*pool_mode = transaction/,
    );
  });

  it('behind a pooler, a role whose transactions are not read committed', async () => {
    await role.set({ default_transaction_isolation: `'repeatable read'` });
    const pooler = await startPgBouncer(role.url, { poolMode: 'transaction' });
    onTestFinished(() => pooler.stop());
    await expect(start(pooler.url)).rejects.toThrow(
      `alter role "${role.name}" set default_transaction_isolation = 'read committed'`,
    );
  });
});
