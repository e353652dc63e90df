import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';

import { runCli, startCli, type CliProcess } from '../support/cli.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { createTestRole } from '../support/roles.js';
import { getFreePort } from '../support/services/free-port.js';
import { startPgBouncer } from '../support/services/pgbouncer.js';
import { runOn } from '../support/services/postgres-statement.js';
import { askRedis, startRedis, type RunningRedis } from '../support/services/redis-server.js';

interface Check {
  readonly what: string;
  readonly health: string;
  readonly found: string;
  readonly advice: string | null;
}

let database: TestDatabase;
let redis: RunningRedis;
beforeAll(async () => {
  database = await createTestDatabase();
  redis = await startRedis({ args: ['--requirepass', 'right'] });
  await askRedis(
    withPassword('default:right'),
    'acl',
    'setuser',
    'reader',
    'on',
    '>p',
    '~*',
    '&*',
    '+@read',
    '+info',
    '+ping',
  );
  await askRedis(
    withPassword('default:right'),
    'acl',
    'setuser',
    'deaf',
    'on',
    '>p',
    '~*',
    'resetchannels',
    '+@all',
  );
  await askRedis(
    withPassword('default:right'),
    ...[
      'acl',
      'setuser',
      'fit',
      'on',
      '>p',
      '~sluice:*',
      '&sluice:*',
      '+@all',
      '-@dangerous',
      '+info',
    ],
  );
});
afterAll(async () => {
  await redis.stop();
  await database.drop();
});

function withPassword(user: string, path = ''): string {
  return `redis://${user}@127.0.0.1:${redis.port}${path}`;
}

/** Starts one and answers with its first line and what /readyz answers then. */
async function serve(
  ...args: string[]
): Promise<{ cli: CliProcess; line: string; url: string; status: number }> {
  const cli = startCli([
    'serve',
    '--port',
    '0',
    '--log-level',
    'silent',
    '--database-url',
    database.url,
    ...args,
  ]);
  const [line, url = ''] = await cli.waitForLine(/^Sluice .* at (http:[^\s]+?):?(?: .*)?$/);
  const response = await fetch(new URL('/readyz', url));
  return { cli, line, url, status: response.status };
}

async function doctor(...args: string[]): Promise<readonly Check[]> {
  const port = String(await getFreePort());
  const { stdout } = await runCli(['doctor', '--json', '--port', port, ...args]);
  return JSON.parse(stdout) as readonly Check[];
}

describe('R-CH12: "Sluice is ready" is printed when /readyz answers 200, and not before', () => {
  it.each([
    ['a wrong password', () => withPassword('default:wrong'), /WRONGPASS/],
    ['no Redis there', () => 'redis://127.0.0.1:1', /ECONNREFUSED/],
    [
      'a user who may not write',
      () => withPassword('reader:p'),
      /Redis at .* refuses: NOPERM.*ACL SETUSER/,
    ],
    ['a user who may not listen', () => withPassword('deaf:p'), /Redis at .* refuses: NOPERM/],
  ])('%s: the cause is named instead', async (_, redisUrl, cause) => {
    const { line, status, cli } = await serve('--redis-url', redisUrl());
    expect(status).toBe(503);
    expect(line).toMatch(/^Sluice is not ready at http/);
    expect(line).toMatch(cause);
    expect(cli.stdout.join('\n')).not.toMatch(/Sluice is ready|another one serves/);
  });

  it('it is printed as soon as what was missing is there', async () => {
    await askRedis(
      withPassword('default:right'),
      'acl',
      'setuser',
      'late',
      'on',
      '>p',
      '~*',
      '&*',
      '+info',
      '+ping',
    );
    const { cli, url } = await serve('--redis-url', withPassword('late:p'));
    await askRedis(withPassword('default:right'), 'acl', 'setuser', 'late', '+@all');
    await cli.waitForLine(/^Sluice is ready at http/);
    expect((await fetch(new URL('/readyz', url))).status).toBe(200);
  });

  it('the rights that the documentation names are enough', async () => {
    expect(await serve('--redis-url', withPassword('fit:p'))).toMatchObject({
      status: 200,
      line: expect.stringMatching(/^Sluice is ready/) as string,
    });
  });
});

describe('R-CH14: a database that Redis does not have', () => {
  it('is refused, and nothing is written to database 0', async () => {
    await askRedis(withPassword('default:right'), 'flushall');
    const target = [
      '--database-url',
      database.url,
      '--redis-url',
      withPassword('default:right', '/99'),
    ];
    const { code, stdout, stderr } = await runCli(['serve', '--port', '0', ...target]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/Redis at .*\/99: there is no database 99/);
    expect(await askRedis(withPassword('default:right'), 'dbsize')).toBe(0);
    expect(stdout).not.toContain('ready');
  });
});

describe('R-ST2: serve names what is wrong with Postgres', () => {
  it('a multi-host URL is taken, and a standby is no choice', async () => {
    const list = database.url.replace('@127.0.0.1', `@127.0.0.1:1,127.0.0.1`);
    const serve = ['serve', '--port', '0', '--log-level', 'silent', '--database-url'];
    await startCli([...serve, `${list}?target_session_attrs=read-write`]).waitForLine(
      /^Sluice is ready/,
    );
    const { code, stderr } = await runCli([...serve, `${list}?target_session_attrs=standby`]);
    expect(code).toBe(2);
    expect(stderr).toContain('host1:5432,host2:5432/database?target_session_attrs=read-write');
  });

  it('statement pooling is refused at start, without a stack', async () => {
    const pooler = await startPgBouncer(database.url, { poolMode: 'statement', poolSize: 5 });
    onTestFinished(() => pooler.stop());
    const { code, stderr } = await runCli(['serve', '--port', '0', '--database-url', pooler.url]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/statement pooling/);
    expect(stderr).toContain('pool_mode = transaction');
    expect(stderr).not.toMatch(/Postgres is away|^\s+at /m);
  });
});

describe('R-ST2: doctor tries what it tells', () => {
  it.each([
    ['transaction', 'by transaction'],
    ['session', 'by session'],
  ] as const)('pooling by %s is found out', async (poolMode, found) => {
    const pooler = await startPgBouncer(database.url, { poolMode, poolSize: 5 });
    onTestFinished(() => pooler.stop());
    expect(await doctor('--database-url', pooler.url)).toContainEqual(
      expect.objectContaining({
        what: 'pooling',
        health: 'ok',
        found: expect.stringContaining(found) as string,
      }),
    );
  });

  it('straight to Postgres, with a Redis user of the documented rights: nothing is wrong', async () => {
    const checks = await doctor(
      '--database-url',
      database.url,
      '--redis-url',
      withPassword('fit:p'),
    );
    const healthy = checks.filter(({ health }) => health === 'ok').map(({ what }) => what);
    const expected = [
      'encoding',
      'writes',
      'durability',
      'pooling',
      'rights',
      'schema',
      'Redis rights',
    ];
    expect(healthy).toEqual(expect.arrayContaining(expected));
    expect(checks.filter(({ health }) => health === 'failed')).toEqual([]);
  });

  it('what a role lacks, and how it gets it', async () => {
    const role = await createTestRole(database.url);
    onTestFinished(() => role.drop());
    expect(await doctor('--database-url', role.url)).toContainEqual({
      what: 'rights',
      health: 'failed',
      found: expect.stringContaining('lacks usage, create') as string,
      advice: `Run as its owner: grant usage, create on schema sluice to "${role.name}"`,
    });
    await role.set({ default_transaction_read_only: 'on', synchronous_commit: 'off' });
    expect(await doctor('--database-url', role.url)).toContainEqual(
      expect.objectContaining({
        what: 'Postgres',
        health: 'failed',
        advice: `Run: alter role "${role.name}" set default_transaction_read_only = off`,
      }),
    );
    await role.set({ synchronous_commit: 'off' });
    expect(await doctor('--database-url', role.url)).toContainEqual(
      expect.objectContaining({ what: 'durability', health: 'warning' }),
    );
  });

  it('what a Redis user lacks', async () => {
    for (const user of ['reader:p', 'deaf:p']) {
      const target = ['--database-url', database.url, '--redis-url', withPassword(user)];
      expect(await doctor(...target)).toContainEqual(
        expect.objectContaining({
          what: 'Redis rights',
          health: 'failed',
          advice: expect.stringContaining('ACL SETUSER') as string,
        }),
      );
    }
  });

  it('an encoding that will not do', async () => {
    const name = `latin_${process.pid}`;
    const url = new URL(database.url);
    await runOn(
      url.href,
      `create database ${name} encoding 'LATIN1' locale 'C' template template0`,
    );
    onTestFinished(() => runOn(url.href, `drop database ${name}`));
    const latin = new URL(url);
    latin.pathname = `/${name}`;
    expect(await doctor('--database-url', latin.href)).toContainEqual(
      expect.objectContaining({
        health: 'failed',
        found: expect.stringContaining('LATIN1') as string,
      }),
    );
  });
});
