import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { startPgBouncer } from '../../../test/support/services/pgbouncer.js';
import { startStandby, startPostgres } from '../../../test/support/services/postgres-server.js';
import { inDatabase } from '../../../test/support/services/postgres-statement.js';
import { askRedis, startRedis } from '../../../test/support/services/redis-server.js';
import { until } from '../../../test/support/until.js';
import type { Lab } from '../../shared/lab.js';
import { count, judged, type Row, type Scenario } from '../../shared/scenario.js';
import { ask, OneServer } from '../one-server.js';

/** One for each setting of a session that a role may have otherwise. */
const badSettings: readonly (readonly [string, string])[] = [
  ['DateStyle', `'SQL, DMY'`],
  ['IntervalStyle', 'iso_8601'],
  ['TimeZone', `'Asia/Kolkata'`],
  ['extra_float_digits', '-15'],
  ['bytea_output', 'escape'],
  ['array_nulls', 'off'],
  ['standard_conforming_strings', 'off'],
  ['client_encoding', 'LATIN1'],
  ['search_path', 'nowhere'],
  ['statement_timeout', `'30ms'`],
  ['lock_timeout', `'1ms'`],
  ['idle_session_timeout', `'1s'`],
  ['idle_in_transaction_session_timeout', `'5ms'`],
  ['enable_indexscan', 'off'],
  ['enable_nestloop', 'off'],
  ['jit', 'on'],
];

/** Who submit at once. */
const lanes = 10;

export const misconfigured: Scenario = {
  name: 'misconfigured',
  about:
    'Roles, databases, poolers and Redis users as people set them up: what can work works, and what can not is refused at start with its cause',
  run: async (lab) => [
    ...(await badRoles(lab)),
    ...(await shared(lab)),
    await refusedAtStart(lab),
    await redisUsers(lab),
  ],
};

interface Place {
  readonly role: string;
  readonly url: string;
}

/** A database in which a role owns the schema that was made for it, and nothing else. */
async function makePlace(lab: Lab): Promise<Place> {
  const name = `lab_${randomBytes(4).toString('hex')}`;
  await ask(lab.postgresUrl, `create role ${name} login`);
  await ask(lab.postgresUrl, `create database ${name}`);
  const url = new URL(inDatabase(lab.postgresUrl, name));
  await ask(url.href, `create schema sluice authorization ${name}`);
  url.username = name;
  return { role: name, url: url.href };
}

async function badRoles(lab: Lab): Promise<Row[]> {
  const settings = lab.size(badSettings, badSettings.slice(0, 3));
  const tasks = lab.size(200, 20);
  let failures = 0;
  let completed = 0;
  for (const [name, value] of settings) {
    const { role, url } = await makePlace(lab);
    await ask(lab.postgresUrl, `alter role ${role} set ${name} = ${value}`);
    const run = await workThrough(['--database-url', url], tasks);
    failures += run.failures;
    completed += run.completed;
    lab.progress.say(`${name}: ${run.completed} completed, ${run.failures} answers other than 2xx`);
  }
  const wanted = settings.length * tasks;
  return [
    judged(
      {
        what: `a role that owns the schema and sets one of ${settings.length} settings badly: completed; answers other than 2xx to submits, lists and looks`,
        measured: `${count(completed)} of ${count(wanted)}; ${count(failures)}`,
        numbers: { settings: settings.length, completed, wanted, failures },
      },
      'all; 0',
      completed === wanted && failures === 0,
    ),
  ];
}

async function workThrough(
  args: readonly string[],
  tasks: number,
): Promise<{ completed: number; failures: number }> {
  await using server = await OneServer.start(args);
  let failures = 0;
  const call = async (path: string, body?: unknown): Promise<unknown> => {
    const post = { method: 'POST', headers: { 'content-type': 'application/json' } };
    const init = body === undefined ? {} : { ...post, body: JSON.stringify(body) };
    const response = await fetch(`${server.url}/api/v1${path}`, init);
    // A machine that has more to do than this refuses for a moment.
    if (response.status === 429) {
      await delay(1_000);
      return call(path, body);
    }
    if (!response.ok) failures += 1;
    return response.json();
  };
  await server.startWorker('a', 50);
  const submitted: unknown[] = [];
  const submitInTurn = async () => {
    for (let n = 0; n < tasks / lanes; n += 1) {
      submitted.push(await call('/tasks', { task_type: 'step', parameters: { ms: 5 } }));
    }
  };
  await Promise.all(Array.from({ length: lanes }, submitInTurn));
  const completed = async () => {
    const page = (await call('/tasks?status=completed&limit=1000')) as { items?: unknown[] };
    return page.items?.length ?? 0;
  };
  const isDone = async () => (await completed()) === tasks || failures > 0;
  await until('all to complete', isDone, { deadlineMs: 60_000, everyMs: 100 });
  for (const receipt of submitted.slice(0, 20)) {
    await call(`/tasks/${(receipt as { task_id?: string }).task_id ?? 'none'}`);
  }
  return { completed: await completed(), failures };
}

/** Others use the same connections of the pooler. */
async function shared(lab: Lab): Promise<Row[]> {
  const { url } = await makePlace(lab);
  const pooler = await startPgBouncer(url, { poolMode: 'transaction', poolSize: 5 });
  const all = 'select name, setting from pg_settings order by name';
  const tasks = lab.size(1_000, 50);
  try {
    const before = new Map(
      (await settingsIn(pooler.url, all)).map((row) => [row.name, row.setting]),
    );
    const run = await workThrough(['--database-url', pooler.url], tasks);
    let left = 0;
    for (let look = 0; look < 20; look += 1) {
      const now = await settingsIn(pooler.url, all);
      left += now.filter(({ name, setting }) => isOther(before.get(name), setting)).length;
    }
    return [
      judged(
        {
          what: 'behind PgBouncer in transaction mode: completed; answers other than 2xx; settings of ours that others find',
          measured: `${count(run.completed)} of ${count(tasks)}; ${count(run.failures)}; ${count(left)}`,
          numbers: { completed: run.completed, failures: run.failures, left },
        },
        'all; 0; 0',
        run.completed === tasks && run.failures === 0 && left === 0,
      ),
    ];
  } finally {
    await pooler.stop();
  }
}

/** Those of plpgsql are there from its first use on. */
function isOther(before: string | undefined, now: string): boolean {
  return before !== undefined && before !== now;
}

function settingsIn(url: string, all: string): Promise<{ name: string; setting: string }[]> {
  return ask(url, all);
}

async function refusedAtStart(lab: Lab): Promise<Row> {
  const { role, url } = await makePlace(lab);
  const named: string[] = [];
  const unnamed: string[] = [];
  const refuse = async (what: string, args: readonly string[], cause: RegExp) => {
    const failure = await OneServer.start(args).then(
      async (server) => {
        await server[Symbol.asyncDispose]();
        return 'it started';
      },
      (error: unknown) => (error as Error).message,
    );
    (cause.test(failure) ? named : unnamed).push(what);
    if (!cause.test(failure)) lab.progress.say(`${what}: ${failure}`);
  };
  const database = (at: string) => ['--database-url', at];

  const statement = await startPgBouncer(url, { poolMode: 'statement', poolSize: 5 });
  await refuse('statement pooling', database(statement.url), /statement pooling/);
  await statement.stop();

  const latin = `${role}_latin`;
  const make = `create database ${latin} encoding 'LATIN1' locale 'C' template template0`;
  await ask(lab.postgresUrl, make);
  await refuse('encoding', database(inDatabase(lab.postgresUrl, latin)), /encoding LATIN1/);

  await ask(lab.postgresUrl, `alter role ${role} set default_transaction_read_only = on`);
  await refuse(
    'read-only role',
    database(url),
    /alter role .* default_transaction_read_only = off/,
  );
  await ask(lab.postgresUrl, `alter role ${role} reset all`);

  await ask(inDatabase(lab.postgresUrl, role), 'drop schema sluice cascade');
  await refuse('missing right', database(url), /create schema sluice authorization/);

  const primary = await startPostgres({ mortal: true });
  const standby = await startStandby(primary.url);
  await refuse('standby', database(standby.url), /is a standby and accepts no writes/);
  await standby.stop();
  await primary.stop();

  const redis = await startRedis();
  const owner = database(inDatabase(lab.postgresUrl, role));
  await refuse(
    'database 99 of Redis',
    [...owner, '--redis-url', `${redis.url}/99`],
    /no database 99/,
  );
  await redis.stop();
  return judged(
    {
      what: 'refused at start with the cause and what to do; not so',
      measured: `${named.join(', ')}; ${unnamed.length === 0 ? 'none' : unnamed.join(', ')}`,
      numbers: { named: named.length, unnamed: unnamed.length },
    },
    'all six; none',
    named.length === 6 && unnamed.length === 0,
  );
}

/** None of them may be told that the server is ready, or that another one serves. */
async function redisUsers(lab: Lab): Promise<Row> {
  const redis = await startRedis();
  const { url } = await makePlace(lab);
  const asUser = (user: string) => redis.url.replace('//', `//${user}@`);
  await askRedis(
    redis.url,
    ...['acl', 'setuser', 'reader', 'on', '>p', '~*', '&*', '+@read', '+info'],
  );
  await askRedis(
    redis.url,
    ...['acl', 'setuser', 'deaf', 'on', '>p', '~*', 'resetchannels', '+@all'],
  );
  const cases: readonly (readonly [string, RegExp])[] = [
    [asUser('reader:wrong'), /WRONGPASS/],
    ['redis://127.0.0.1:1', /ECONNREFUSED/],
    [asUser('reader:p'), /refuses: NOPERM/],
    [asUser('deaf:p'), /refuses: NOPERM/],
  ];
  let honest = 0;
  try {
    for (const [redisUrl, cause] of cases) {
      const line = await firstLine(['--database-url', url, '--redis-url', redisUrl]);
      if (line.startsWith('Sluice is not ready') && cause.test(line)) honest += 1;
      else lab.progress.say(`${redisUrl}: ${line}`);
    }
  } finally {
    await redis.stop();
  }
  return judged(
    {
      what: 'a Redis that refuses us (password, absent, may not write, may not listen): first line says "not ready" and why',
      measured: `${honest} of ${cases.length}`,
      numbers: { honest, cases: cases.length },
    },
    'all',
    honest === cases.length,
  );
}

async function firstLine(args: readonly string[]): Promise<string> {
  await using server = await OneServer.start(args);
  return await server.firstLine;
}
