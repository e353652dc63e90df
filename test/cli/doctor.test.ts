import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { runCli, startCli } from '../support/cli.js';
import { createEmptyDatabase, type TestDatabase } from '../support/postgres.js';
import { createTestRole } from '../support/roles.js';
import { getFreePort } from '../support/services/free-port.js';
import { runOn } from '../support/services/postgres-statement.js';

describe('doctor and migrate', () => {
  let folder: string;
  let database: TestDatabase;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-doctor-'));
    database = await createEmptyDatabase();
  });
  afterAll(async () => {
    await rm(folder, { recursive: true });
    await database.drop();
  });

  it('finds nothing wrong before the first start, and says what to do next', async () => {
    const port = String(await getFreePort());
    const doctor = ['doctor', '--port', port, '--data', join(folder, 'new')];
    const { code, stdout } = await runCli(doctor);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^✓ Node +\d+\./m);
    expect(stdout).toMatch(/^! server .*\n.*sluice serve/m);
    expect(stdout).toMatch(/^✓ port \d+ +free$/m);
    expect(stdout).toMatch(/^✓ data folder .* not there yet/m);
  });

  it('looks at Postgres: version, schema, clock; migrate brings the schema up to date', async () => {
    const target = ['--database-url', database.url];
    const doctor = ['doctor', '--port', String(await getFreePort()), '--json', ...target];
    const before = await runCli(doctor);
    expect(before.code).toBe(0);
    expect(JSON.parse(before.stdout)).toContainEqual(
      expect.objectContaining({ what: 'schema', health: 'warning', found: 'not there yet' }),
    );
    const migrated = await runCli(['migrate', ...target]);
    expect(migrated.stdout).toMatch(/^The schema in postgres.* went from version 0 to \d+$/);
    expect((await runCli(['migrate', ...target])).stdout).toMatch(/is up to date: version \d+$/);
    const after = JSON.parse((await runCli(doctor)).stdout) as { what: string; health: string }[];
    const healthy = after.filter(({ health }) => health === 'ok').map(({ what }) => what);
    expect(healthy).toEqual(
      expect.arrayContaining(['Postgres', 'Postgres version', 'schema', 'clock skew']),
    );
  });

  it('R-HA2: a role that may open one connection only is told so, and everything else is checked', async () => {
    const role = await createTestRole(database.url);
    await runOn(database.url, `alter role ${role.name} connection limit 1`);
    const doctor = ['doctor', '--port', String(await getFreePort()), '--json'];
    const { stdout, stderr } = await runCli([...doctor, '--database-url', role.url]);
    expect(stderr).not.toMatch(/unexpected|at .*\.js:/);
    const checks = JSON.parse(stdout) as { what: string; health: string; found: string }[];
    const pooling = checks.find(({ what }) => what === 'pooling');
    expect(pooling).toMatchObject({ health: 'warning' });
    expect(pooling?.found).toMatch(/too many connections/);
    expect(checks.map(({ what }) => what)).toContain('clock skew');
    await role.drop();
  });

  it('a Postgres that is not there is a failure, and its password is not shown', async () => {
    const url = 'postgres://me:secret@127.0.0.1:1/none';
    const { code, stdout, stderr } = await runCli(['doctor', '--database-url', url]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^✗ Postgres .*ECONNREFUSED.*\n.*password/m);
    expect(stdout + stderr).not.toContain('secret');
  });

  it('looks at Redis: version, eviction, clock', async () => {
    const target = ['--database-url', database.url, '--redis-url', inject('redisUrl')];
    const doctor = ['doctor', '--port', String(await getFreePort()), '--json', ...target];
    const { code, stdout } = await runCli(doctor);
    expect(code).toBe(0);
    const checks = JSON.parse(stdout) as { what: string; health: string }[];
    const healthy = checks.filter(({ health }) => health === 'ok').map(({ what }) => what);
    expect(healthy).toEqual(
      expect.arrayContaining(['Redis', 'Redis version', 'Redis eviction', 'Redis clock skew']),
    );
  });

  it('a Redis that is not there is a failure, and its password is not shown', async () => {
    const target = ['--database-url', database.url, '--redis-url', 'redis://:secret@127.0.0.1:1'];
    const { code, stdout, stderr } = await runCli(['doctor', ...target]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^✗ Redis .*ECONNREFUSED.*\n.*password/m);
    expect(stdout + stderr).not.toContain('secret');
  });

  it('sees the server that runs', async () => {
    const serve = ['serve', '--port', '0', '--database-url', database.url, '--log-level', 'silent'];
    const [, url = ''] = await startCli(serve).waitForLine(/^Sluice is ready at (http:\S+)$/);
    const doctor = ['doctor', '--database-url', database.url, '--port', new URL(url).port];
    const { code, stdout } = await runCli(doctor);
    expect(code).toBe(0);
    expect(stdout).toContain(`ready at ${url}`);
    expect(stdout).toMatch(/held by the server/);
  });
});
