import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli, startCli } from '../support/cli.js';
import { createEmptyDatabase, type TestDatabase } from '../support/postgres.js';
import { until } from '../support/until.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await createEmptyDatabase();
});
afterAll(() => database.drop());

describe('sluice keys', () => {
  it('R-AD6: the first key is made before anybody may call; then a server may be reached', async () => {
    const env = { DATABASE_URL: database.url, SLUICE_API_KEY: undefined };
    const alone = await runCli(['serve', '--host', '0.0.0.0', '--port', '0'], { env });
    expect(alone.code).toBe(2);
    expect(alone.stderr).toContain('Without API keys the server listens on this machine only');
    expect(alone.stderr).toContain('sluice keys create');

    const made = await runCli(['keys', 'create', '--name', 'ops', '--scopes', 'admin'], { env });
    expect(made.stdout).toMatch(/^sluice_[0-9a-z]{12}_[0-9A-Za-z]{38}$/);
    expect(made.stderr).toContain('the first');
    const server = startCli(['serve', '--host', '0.0.0.0', '--port', '0'], { env });
    const [, port = ''] = await server.waitForLine(/ready at http:\/\/0\.0\.0\.0:(\d+)/);
    await server.waitForLine(/callers +whoever has an API key/);
    const url = `http://127.0.0.1:${port}`;
    const asking = { env: { ...env, SLUICE_URL: url } };

    const without = await runCli(['queues'], asking);
    expect([without.code, without.stdout]).toEqual([1, '']);
    expect(without.stderr).toContain('Set SLUICE_API_KEY to a valid key');

    const admin = { env: { ...asking.env, SLUICE_API_KEY: made.stdout } };
    const second = await runCli(
      ['keys', 'create', '--name', 'ci', '--scopes', 'submit,read', '--expires', '90d', '--json'],
      admin,
    );
    const ci = JSON.parse(second.stdout) as { id: string; key: string; is_first: boolean };
    expect(ci).toMatchObject({ name: 'ci', scopes: ['submit', 'read'], is_first: false });
    const submitted = await runCli(['submit', 'chat', '--api-key', ci.key], asking);
    expect(submitted.code).toBe(0);
    const paused = await runCli(['pause', 'default', '--api-key', ci.key], asking);
    expect([paused.code, paused.stderr]).toEqual([1, expect.stringContaining('scope admin')]);

    const signedIn = await fetch(`${url}/sign-in`, {
      method: 'POST',
      redirect: 'manual',
      headers: { origin: url, 'content-type': 'application/x-www-form-urlencoded' },
      body: `key=${ci.key}`,
    });
    expect(signedIn.status).toBe(303);
    const sessions = await runCli(['keys', 'sessions', ci.id], admin);
    const [, sessionId = ''] = /^(\w{12}) +127\.0\.0\.1 /m.exec(sessions.stdout) ?? [];
    const out = await runCli(['keys', 'sign-out', ci.id, sessionId], admin);
    expect([out.code, out.stdout]).toEqual([0, expect.stringContaining('is signed out')]);
    const none = await runCli(['keys', 'sessions', ci.id], admin);
    expect(none.stdout).toBe(`Nobody is signed in with ${ci.id}.`);

    // Straight on the database, while the server runs.
    const revoked = await runCli(['keys', 'revoke', ci.id, '--database-url', database.url], asking);
    expect(revoked.stdout).toContain('is revoked');
    await until('the server notices', async () => {
      const headers = { authorization: `Bearer ${ci.key}` };
      return (await fetch(`${url}/api/v1/tasks`, { headers })).status === 401;
    });
    const list = await runCli(['keys'], admin);
    expect(list.stdout).toMatch(/ci +submit, read .* revoked/);
    expect(list.stdout).toMatch(/ops +admin .* good/);
    expect(server.stdout.join() + server.stderr.join()).not.toContain('sluice_');
  }, 240_000);

  it('R-AD6: containers share a key that was made before the database', async () => {
    const given = await runCli(['keys', 'generate']);
    expect(given.stdout).toMatch(/^sluice_[0-9a-z]{12}_[0-9A-Za-z]{38}$/);
    const env = { DATABASE_URL: database.url, SLUICE_API_KEY: given.stdout, SLUICE_URL: undefined };
    const create = (scopes: string, variable = 'SLUICE_API_KEY') =>
      runCli(['keys', 'create', '--name', 'pod', '--scopes', scopes, '--key-from-env', variable], {
        env,
      });

    const both = await Promise.all([create('worker,read'), create('worker,read')]);
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    expect(both.map(({ stdout }) => stdout.replace(/.* is /, '')).sort()).toEqual([
      'stored',
      'there already',
    ]);
    const again = await create('read,worker');
    expect([again.code, again.stdout]).toEqual([0, expect.stringContaining('is there already')]);
    expect(JSON.stringify([both, again])).not.toContain(given.stdout);
    const other = await create('admin');
    expect([other.code, other.stderr]).toEqual([1, expect.stringContaining('something else')]);
    const unset = await create('admin', 'NO_SUCH_VARIABLE');
    expect([unset.code, unset.stderr]).toEqual([
      2,
      'The variable NO_SUCH_VARIABLE is not set.\n"sluice keys generate" prints a key for it.',
    ]);

    const server = startCli(['serve', '--host', '0.0.0.0', '--port', '0'], { env });
    const [, port = ''] = await server.waitForLine(/ready at http:\/\/0\.0\.0\.0:(\d+)/);
    const asked = await runCli(['queues', '--url', `http://127.0.0.1:${port}`], { env });
    expect(asked.code).toBe(0);
    await runCli(['keys', 'revoke', given.stdout.slice(7, 19)], { env });
    const revoked = await create('worker,read');
    expect([revoked.code, revoked.stderr]).toEqual([1, expect.stringContaining('is revoked')]);
  }, 120_000);

  it('R-AD6: what can not be a key is refused before anything is opened', async () => {
    const wrong = await runCli(['keys', 'create', '--name', 'x', '--scopes', 'root']);
    expect([wrong.code, wrong.stderr]).toEqual([
      2,
      expect.stringContaining('submit, read, worker'),
    ]);
  });
});
