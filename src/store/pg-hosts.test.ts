import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';

import { getFreePort } from '../../test/support/services/free-port.js';
import { startPostgres, startStandby } from '../../test/support/services/postgres-server.js';
import { runOn } from '../../test/support/services/postgres-statement.js';
import type { MortalServer } from '../../test/support/services/throw-away-server.js';
import { until } from '../../test/support/until.js';
import { DatabaseAwayError, type Database } from './database.js';
import { openPgDatabase } from './pg-database.js';

let primary: MortalServer;
let standby: MortalServer;
beforeAll(async () => {
  primary = await startPostgres({ mortal: true });
  await runOn(primary.url, 'create table public.kept (n integer)');
  standby = await startStandby(primary.url);
});
afterAll(async () => {
  await standby.stop();
  await primary.stop();
});

function manyHosts(...servers: readonly (MortalServer | string)[]): string {
  const hosts = servers.map((one) => (typeof one === 'string' ? one : new URL(one.url).host));
  return `postgres://postgres@${hosts.join(',')}/postgres?target_session_attrs=read-write`;
}

async function open(url: string): Promise<Database> {
  const db = await openPgDatabase({ url, poolSize: 3, onError: () => undefined });
  onTestFinished(() => db.close());
  return db;
}

async function portOf(db: Database): Promise<string> {
  const [row] = await db.query<{ port: string }>(`select current_setting('port') as port`);
  return row?.port ?? '';
}

const portIn = ({ url }: MortalServer) => new URL(url).port;
const write = (db: Database) => db.query('insert into public.kept values ($1)', [1]);

describe('R-RE8: several hosts in one URL', () => {
  it('the one that accepts writes is found, wherever it stands in the list', async () => {
    const nobody = `127.0.0.1:${await getFreePort()}`;
    const lists = [
      [primary, standby],
      [standby, primary],
      [nobody, standby, primary],
    ];
    for (const list of lists) {
      const db = await open(manyHosts(...list));
      expect(await portOf(db)).toBe(portIn(primary));
      await write(db);
    }
  });

  it('none that accepts writes: every host and its reason is named', async () => {
    const nobody = `127.0.0.1:${await getFreePort()}`;
    const failure = await open(manyHosts(nobody, standby)).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(DatabaseAwayError);
    const { message } = failure as Error;
    expect(message).toContain(`${nobody}: connect ECONNREFUSED`);
    expect(message).toContain(`${new URL(standby.url).host}: it is a standby`);
  });

  it('a standby alone is refused by its name', async () => {
    await expect(open(standby.url)).rejects.toThrow(/is a standby and accepts no writes\.\n/);
  });

  it('a primary that becomes read-only is left with all connections, for the one that was promoted', async () => {
    const db = await open(manyHosts(primary, standby));
    // Three connections to the old primary, two of which wait in the pool afterwards.
    await Promise.all([1, 2, 3].map(() => db.query('select pg_sleep(0.05)')));
    await runOn(standby.url, 'select pg_promote()');
    await runOn(primary.url, 'alter system set default_transaction_read_only = on');
    await runOn(primary.url, 'select pg_reload_conf()');
    const failures: unknown[] = [];
    await until('a write that is accepted', () =>
      write(db).then(
        () => true,
        (error: unknown) => {
          failures.push(error);
          return false;
        },
      ),
    );
    expect(failures.every((error) => error instanceof DatabaseAwayError)).toBe(true);
    const ports = await Promise.all([1, 2, 3].map(() => portOf(db)));
    expect(ports).toEqual(ports.map(() => portIn(standby)));
  });

  it('a primary that is killed: the other one is used, as long as it is the primary', async () => {
    await runOn(primary.url, 'alter system reset default_transaction_read_only');
    await runOn(primary.url, 'select pg_reload_conf()');
    const db = await open(manyHosts(primary, standby));
    expect(await portOf(db)).toBe(portIn(primary));
    await primary.kill('SIGKILL');
    await until('a write that is accepted', () => write(db).then(() => true));
    expect(await portOf(db)).toBe(portIn(standby));
  });
});
