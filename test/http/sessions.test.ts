import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keyHash, newKeyText } from '../../src/engine/key-text.js';
import { openEngine, type Engine } from '../../src/engine/open-engine.js';
import type { CreatedKey } from '../../src/protocol/keys-api.js';
import type { App } from '../../src/server/app-parts.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { until } from '../support/until.js';
import { bearer, buildKeyedApp, listening } from './keyed.js';
import { inject, type Answer, type Call } from './support.js';

/** Two servers over one Postgres, without Redis: nothing carries messages between them. */
interface Servers {
  readonly database: TestDatabase;
  readonly engines: readonly [Engine, Engine];
  readonly apps: readonly [App, App];
  readonly admin: CreatedKey;
}

let servers: Servers;
beforeAll(async () => {
  const database = await createTestDatabase();
  const at = { kind: 'postgres', url: database.url } as const;
  const engines = [
    await openEngine({ database: at }),
    await openEngine({ database: at, role: 'submit' }),
  ] as const;
  for (const engine of engines) await engine.keys.watch();
  const doors = { trustProxy: ['127.0.0.1'] };
  const apps = [buildKeyedApp(engines[0], doors), buildKeyedApp(engines[1], doors)] as const;
  const admin = await engines[0].createKey({ name: 'ops', scopes: ['admin'] });
  servers = { database, engines, apps, admin };
});
afterAll(async () => {
  for (const app of servers.apps) await app.close();
  for (const engine of servers.engines) await engine.close();
  await servers.database.drop();
});

let addresses = 0;
const nextAddress = () => {
  addresses += 1;
  return `10.7.${addresses >> 8}.${addresses & 255}`;
};

function signIn(app: App, key: string, address = nextAddress()): Promise<Answer> {
  return inject(app, {
    method: 'POST',
    url: '/sign-in',
    body: `key=${key}`,
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      origin: 'http://localhost:80',
      host: 'localhost:80',
      'x-forwarded-for': address,
    },
  });
}

const cookieOf = (answer: Answer) => String(answer.headers['set-cookie']).split(';')[0] ?? '';
const call = (app: App, one: Call, key = servers.admin.key) =>
  inject(app, { ...one, headers: { ...bearer(key), ...one.headers } });
const makeKey = (name: string) =>
  servers.engines[0].createKey({ name, scopes: ['read', 'submit'] });

async function statusWith(app: App, cookie: string): Promise<number> {
  const headers = { cookie, 'x-forwarded-for': nextAddress() };
  return (await inject(app, { url: '/api/v1/queues', headers })).status;
}

describe('a session', () => {
  it('R-HA4: none of a revoked key is good a second later, with sign-ins under way on two servers', async () => {
    const { apps } = servers;
    const keys = await Promise.all(Array.from({ length: 12 }, (_, n) => makeKey(`revoked ${n}`)));
    const statuses: number[] = [];
    const cookies: string[] = [];
    let isOver = false;
    const signInAgainAndAgain = async (app: App, key: CreatedKey) => {
      while (!isOver) {
        const answer = await signIn(app, key.key);
        statuses.push(answer.status);
        if (answer.status === 303) cookies.push(cookieOf(answer));
        if (answer.status === 401) return;
      }
    };
    const people = keys.flatMap((key) => [
      ...Array.from({ length: 3 }, () => signInAgainAndAgain(apps[0], key)),
      ...Array.from({ length: 3 }, () => signInAgainAndAgain(apps[1], key)),
    ]);
    await until('many have signed in', () => statuses.length > 400);
    const revoked = await Promise.all(
      keys.map((key, n) =>
        call(apps[n % 2 === 0 ? 0 : 1], { method: 'DELETE', url: `/api/v1/keys/${key.id}` }),
      ),
    );
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const late = await Promise.all(
      cookies.flatMap((cookie) => apps.map((app) => statusWith(app, cookie))),
    );
    isOver = true;
    await Promise.all(people);
    const is5xx = (status: number) => status >= 500;
    expect({
      revokedWith: [...new Set(revoked.map(({ status }) => status))],
      failedSignIns: statuses.filter(is5xx).length,
      goodAfterASecond: late.filter((status) => status !== 401).length,
    }).toEqual({ revokedWith: [200], failedSignIns: 0, goodAfterASecond: 0 });
    expect(cookies.length).toBeGreaterThan(0);
  });

  it('R-HA4: one whose sign-in commits after its key was revoked is never good', async () => {
    const { apps, database, engines } = servers;
    const { id, name } = await makeKey('late');
    const session = newKeyText();
    await using client = await connected(database.url);
    await client.query('begin');
    await client.query(
      `insert into sluice.api_keys (id, name, hash, scopes, session_of, expires_at)
       values ($1, $2, $3, '{read}', $4, now() + interval '1 hour')`,
      [session.id, name, keyHash(session.text).toString('hex'), id],
    );
    await engines[0].revokeKey(id);
    await client.query('commit');
    const cookie = `sluice_session=${session.text}`;
    const statuses = await Promise.all(apps.map((app) => statusWith(app, cookie)));
    expect(statuses).toEqual([401, 401]);
  });

  it('R-HA4: there are 20 of a key at most, however many sign in at once', async () => {
    const { apps, engines } = servers;
    const { id, key } = await makeKey('popular');
    const answers = await Promise.all(
      Array.from({ length: 36 }, (_, n) => signIn(apps[n % 2 === 0 ? 0 : 1], key)),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([303]));
    expect(await engines[0].listSessions(id)).toHaveLength(20);
    const countGood = async (app: App) => {
      const all = await Promise.all(answers.map((one) => statusWith(app, cookieOf(one))));
      return all.filter((status) => status === 200).length;
    };
    for (const app of apps) {
      await until('the others have ended there', async () => (await countGood(app)) === 20);
    }
  });

  it('R-HA4: is listed with its key, and signed out there', async () => {
    const { apps } = servers;
    const [app] = apps;
    const { id, key } = await makeKey('listed');
    const kept = cookieOf(await signIn(app, key, '10.9.9.9'));
    const lost = cookieOf(await signIn(app, key, '10.9.9.10'));
    const url = `/api/v1/keys/${id}/sessions`;
    const list = await call(app, { url });
    const { items } = list.json<{ items: { id: string; signed_in_from: string }[] }>();
    expect(items).toMatchObject([
      { key_id: id, signed_in_from: '10.9.9.10', ended_at: null },
      { key_id: id, signed_in_from: '10.9.9.9', ended_at: null },
    ]);
    expect(list.body).not.toMatch(/hash|[0-9a-f]{64}|sluice_/);
    const end = { method: 'DELETE', url: `${url}/${items[0]?.id ?? ''}` };
    const ended = await call(app, end);
    expect(ended.json()).toMatchObject({ ended_at: expect.any(String) as string });
    expect((await call(app, end)).json()).toMatchObject(ended.json());
    expect([await statusWith(app, kept), await statusWith(app, lost)]).toEqual([200, 401]);
    expect((await call(app, { url })).json<{ items: unknown[] }>().items).toHaveLength(1);
    const none = await call(app, { method: 'DELETE', url: `${url}/nobody` });
    expect([none.status, none.json<{ code: string }>().code]).toEqual([404, 'session_not_found']);
    expect((await call(app, { url: '/api/v1/keys/nobody/sessions' })).status).toBe(404);
  });

  it('R-HA4: sign-ins are limited by key and by address, and the key works nevertheless', async () => {
    const [app] = servers.apps;
    const busy = await makeKey('busy');
    const byKey: Answer[] = [];
    for (let n = 0; n < 22; n += 1) byKey.push(await signIn(app, busy.key));
    expect(byKey.filter(({ status }) => status === 303)).toHaveLength(20);
    const last = byKey.at(-1);
    expect([last?.status, last?.headers['set-cookie']]).toEqual([429, undefined]);
    expect(Number(last?.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect((await call(app, { url: '/api/v1/queues' }, busy.key)).status).toBe(200);

    const keys = [await makeKey('one of an office'), await makeKey('another of it')] as const;
    const byAddress: number[] = [];
    for (let n = 0; n < 32; n += 1) {
      const { key } = keys[n % 2 === 0 ? 0 : 1];
      byAddress.push((await signIn(app, key, '10.8.8.8')).status);
    }
    expect(byAddress.filter((status) => status === 303)).toHaveLength(30);
    expect((await signIn(app, keys[0].key, '10.8.8.9')).status).toBe(303);
  });
});

describe('a revoked key', () => {
  it('R-HA4: is refused by a server that nobody told, within a second', async () => {
    const [one, other] = servers.engines;
    const [, app] = servers.apps;
    for (let round = 0; round < 3; round += 1) {
      const { id, key } = await makeKey(`told late ${round}`);
      const status = async () => (await call(app, { url: '/api/v1/queues' }, key)).status;
      expect(await status()).toBe(200);
      await one.revokeKey(id);
      const revokedMs = performance.now();
      await until('it is refused', async () => (await status()) === 401);
      expect(performance.now() - revokedMs).toBeLessThan(1_000);
      expect(other.keys.isGood(id)).toBe(false);
    }
  });

  it('R-HA4: is refused also by a request whose body was on its way', async () => {
    const { apps, engines } = servers;
    const { id, key } = await makeKey('slow body');
    const base = await listening(apps[0]);
    const arrived = once(apps[0].server, 'request');
    const request = httpRequest(`${base}/api/v1/tasks`, {
      method: 'POST',
      headers: { ...bearer(key), 'content-type': 'application/json' },
    });
    const answered = once(request, 'response') as Promise<[IncomingMessage]>;
    request.write('{"task_type": "chat",');
    await arrived;
    await engines[0].revokeKey(id);
    request.end('"queue": "slow"}');
    const [response] = await answered;
    response.resume();
    expect(response.statusCode).toBe(401);
  });
});

async function connected(connectionString: string): Promise<Client & AsyncDisposable> {
  const client = new Client({ connectionString });
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}
