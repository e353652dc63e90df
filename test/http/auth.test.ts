import { once } from 'node:events';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { NodeHttpApi } from '../../src/client/node-http-api.js';
import { newKeyText } from '../../src/engine/key-text.js';
import { openEngine } from '../../src/engine/open-engine.js';
import { silentLog } from '../../src/runtime/log.js';
import { createTestDatabase } from '../support/postgres.js';
import { until } from '../support/until.js';
import { bearer, buildKeyedApp, listening, useKeyedHttp } from './keyed.js';
import { inject, post, useHttp, type Answer } from './support.js';

const logged: string[] = [];
const log = pino({ level: 'trace' }, { write: (line: string) => logged.push(line) });
const http = useKeyedHttp({ doors: { corsOrigins: ['https://app.example'] }, log });
const open = useHttp();

const tasks = { url: '/api/v1/tasks' };
const codeOf = (answer: Answer) => answer.json<{ code: string }>().code;
const submit = (queue: string, key?: string, more: object = {}) =>
  http().call(post('/api/v1/tasks', { task_type: 'chat', queue, ...more }), key);
const statusOf = async (taskId: string) =>
  (await http().call({ url: `/api/v1/tasks/${taskId}` })).json<{ status: string }>().status;

async function register(key: string): Promise<string> {
  const answer = await http().call(post('/internal/workers/register', {}), key);
  return answer.json<{ worker_id: string }>().worker_id;
}

const poll = (worker: string, queue: string) =>
  post(`/internal/workers/${worker}/poll`, {
    available_capacity: 1,
    wait_seconds: 60,
    queues: [queue],
  });

/** Resolves when the request that is sent next waits for its answer. */
async function untilWaiting(): Promise<void> {
  await once(http().app.server, 'request').catch(() => undefined);
}

describe('a key', () => {
  it('R-AD6: tampered, of nobody, of another secret, or none: all are told the same', async () => {
    const { id, key } = await http().make();
    const secondSecret = newKeyText().text.slice(-38);
    const bad = [
      null,
      '',
      'sluice',
      `${key.slice(0, -1)}${key.endsWith('a') ? 'b' : 'a'}`,
      `sluice_${id}_${secondSecret}`,
      newKeyText().text,
    ];
    const answers = await Promise.all(bad.map((one) => http().call(tasks, one)));
    for (const answer of answers) {
      expect([answer.status, answer.headers['www-authenticate']]).toEqual([401, 'Bearer']);
      expect(answer.json()).toEqual(answers[0]?.json());
    }
    expect((await http().call(tasks, key)).status).toBe(200);
    const basic = await http().call({ ...tasks, headers: { authorization: `Basic ${key}` } }, null);
    expect(basic.status).toBe(401);
  });

  it('R-AD6: revoked: refused at once, and listed as that without its hash', async () => {
    const { id, key } = await http().make({ name: 'leaked' });
    expect((await http().call(tasks, key)).status).toBe(200);
    const url = `/api/v1/keys/${id}`;
    const revoked = await http().call({ method: 'DELETE', url });
    expect(revoked.json()).toMatchObject({ id, revoked_at: expect.any(String) as string });
    // When it was last used is written down in between, at a time of the server's own.
    const { last_used_at: _, ...isRevoked } = revoked.json();
    expect((await http().call({ method: 'DELETE', url })).json()).toMatchObject(isRevoked);
    expect((await http().call(tasks, key)).status).toBe(401);
    const list = await http().call({ url: '/api/v1/keys?limit=1000' });
    expect(list.json<{ items: unknown[] }>().items).toContainEqual(
      expect.objectContaining(isRevoked),
    );
    expect(list.body).not.toMatch(/hash|[0-9a-f]{64}/);
    const none = await http().call({ method: 'DELETE', url: '/api/v1/keys/nobody' });
    expect([none.status, codeOf(none)]).toEqual([404, 'key_not_found']);
  });

  it('R-AD6: expired: refused', async () => {
    const { key } = await http().make({ expiresInSeconds: 1 });
    await until('it expires', async () => (await http().call(tasks, key)).status === 401);
  });

  it('R-AD6: of another scope: 403 says what is missing, also on a long-poll', async () => {
    const { read, submit: submitting } = http().keys;
    const answer = await http().call(post('/api/v1/tasks', { task_type: 'chat' }), read);
    expect([answer.status, codeOf(answer)]).toEqual([403, 'forbidden']);
    expect(answer.json().detail).toBe('This call needs the scope submit; this key has read.');
    const worker = await register(http().keys.worker);
    expect((await http().call(poll(worker, 'wrong-scope'), submitting)).status).toBe(403);
  });

  it('R-AD6: its owner scopes idempotency keys', async () => {
    const two = await http().make({ scopes: ['submit'] });
    const draft = { idempotency_key: 'the same' };
    const first = await submit('owned', http().keys.submit, draft);
    const again = await submit('owned', http().keys.submit, draft);
    const other = await submit('owned', two.key, draft);
    expect([first.status, again.status, other.status]).toEqual([201, 200, 201]);
    const ids = [first, again, other].map((one) => one.json<{ task_id: string }>().task_id);
    expect([ids[0] === ids[1], ids[0] === ids[2]]).toEqual([true, false]);
  });

  it('is made over HTTP, works for a client, and is seen to be used', async () => {
    const made = await http().call(
      post('/api/v1/keys', { name: 'ci', scopes: ['submit', 'read'], expires_in_seconds: 3600 }),
    );
    expect([made.status, made.headers['cache-control']]).toEqual([201, 'no-store']);
    const { id, key } = made.json<{ id: string; key: string }>();
    const api = new NodeHttpApi(await listening(http().app), { apiKey: key });
    const { taskId } = await api.submit({ taskType: 'chat', queue: 'by-client' });
    expect((await api.getTask(taskId)).queue).toBe('by-client');
    await expect(api.pauseQueue('by-client')).rejects.toMatchObject({ code: 'forbidden' });
    await until('its use is noted', async () => {
      const items = (await http().engine.listKeys({ limit: 1000 })).items;
      return items.find((one) => one.id === id)?.lastUsedAt;
    });
  });
});

describe('a call that waits', () => {
  it('R-AD6: a long-poll whose key is revoked ends with 401 and holds no task', async () => {
    const { id, key } = await http().make({ scopes: ['worker'] });
    const worker = await register(key);
    const arrived = untilWaiting();
    const base = await listening(http().app);
    const { url, body } = poll(worker, 'revoked');
    const polled = fetch(base + url, {
      method: 'POST',
      headers: { ...bearer(key), 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    await arrived;
    await http().engine.revokeKey(id);
    expect((await polled).status).toBe(401);
    const { task_id } = (await submit('revoked')).json<{ task_id: string }>();
    expect(await statusOf(task_id)).toBe('queued');
  });

  it('R-AD6: so does one whose key expires, and a wait', async () => {
    const { key } = await http().make({ scopes: ['worker', 'read'], expiresInSeconds: 2 });
    const worker = await register(key);
    const { task_id } = (await submit('never-done')).json<{ task_id: string }>();
    const ended = await Promise.all([
      http().call(poll(worker, 'expired'), key),
      http().call({ url: `/api/v1/tasks/${task_id}/wait?timeout_seconds=60` }, key),
    ]);
    expect(ended.map(({ status }) => status)).toEqual([401, 401]);
  });

  it('R-AD6: a stream of events ends with its key', async () => {
    const { id, key } = await http().make({ scopes: ['read'] });
    const base = await listening(http().app);
    const stream = await fetch(`${base}/api/v1/events`, { headers: bearer(key) });
    expect(stream.headers.get('x-content-type-options')).toBe('nosniff');
    await http().engine.revokeKey(id);
    expect(await stream.text()).toContain('retry: 1000');
  });

  it('R-HA3: a key has only so many streams; another has its own', async () => {
    const app = buildKeyedApp(http().engine, {}, silentLog, { listenersPerKey: 1 });
    const base = await listening(app);
    const keys = [await http().make({ scopes: ['read'] }), await http().make({ scopes: ['read'] })];
    const listen = (key = '') => fetch(`${base}/api/v1/events`, { headers: bearer(key) });
    const streams = await Promise.all(keys.map(({ key }) => listen(key)));
    expect(streams.map(({ status }) => status)).toEqual([200, 200]);
    const refused = await listen(keys[0]?.key);
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    await refused.text();
    await app.close();
  });
});

describe('several servers', () => {
  it('R-AD6: what one of them makes and revokes counts at the other, and the first ends who waits', async () => {
    const database = await createTestDatabase();
    const at = { kind: 'postgres', url: database.url } as const;
    const engines = [
      await openEngine({ database: at }),
      await openEngine({ database: at, role: 'submit' }),
    ] as const;
    const [one, other] = engines;
    for (const engine of engines) await engine.keys.watch();
    const app = buildKeyedApp(other);
    const waiting = buildKeyedApp(one);
    const { workerId } = await one.register({});
    const polled = inject(waiting, poll(workerId, 'any'));
    const { id, key } = await one.createKey({ name: 'shared', scopes: ['read'] });
    // It came before there was a key.
    expect((await polled).status).toBe(401);
    await waiting.close();
    await until('keys are needed there', () => other.keys.areNeeded());
    const call = { ...tasks, headers: bearer(key) };
    expect((await inject(app, call)).status).toBe(200);
    const fresh = await one.createKey({ name: 'new', scopes: ['read'] });
    // Nobody told it: it looks before it refuses.
    const first = await inject(app, { ...tasks, headers: bearer(fresh.key) });
    expect(first.status).toBe(200);
    await one.revokeKey(id);
    await until('it is refused there', async () => (await inject(app, call)).status === 401);
    await app.close();
    for (const engine of engines) await engine.close();
    await database.drop();
  });
});

describe('brute force', () => {
  it('R-AD6: after ten bad keys an address is told to wait; a good key of it still passes', async () => {
    const { engine, keys } = http();
    const app = buildKeyedApp(engine, { trustProxy: ['127.0.0.1'] });
    const from = (address: string, key: string) =>
      inject(app, { ...tasks, headers: { ...bearer(key), 'x-forwarded-for': address } });
    const statuses: number[] = [];
    for (let n = 0; n < 12; n++) statuses.push((await from('203.0.113.7', 'sluice_no')).status);
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429, 429]);
    const refused = await from('203.0.113.7', newKeyText().text);
    expect([refused.status, codeOf(refused)]).toEqual([429, 'refused']);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect((await from('203.0.113.7', keys.read)).status).toBe(200);
    expect((await from('203.0.113.8', 'sluice_no')).status).toBe(401);
    await app.close();
  });
});

describe('without keys', () => {
  it.each(['localhost', 'localhost:7700', '127.0.0.1:7700', '[::1]:7700', '127.1.2.3'])(
    'R-AD6: a call to %s is answered',
    async (host) => {
      expect((await open().call({ ...tasks, headers: { host } })).status).toBe(200);
    },
  );

  it.each(['evil.example', 'evil.example:7700', 'localhost.evil.example', '10.0.0.1', '0.0.0.0'])(
    'R-AD6: one to %s is not: a name may have been pointed here',
    async (host) => {
      const answer = await open().call({ ...tasks, headers: { host } });
      expect([answer.status, codeOf(answer)]).toEqual([403, 'forbidden']);
    },
  );

  it('R-AD6: pages of other sites may not call, its own may', async () => {
    const by = async (origin: string) =>
      (await open().call({ ...tasks, headers: { host: 'localhost:7700', origin } })).status;
    expect(await by('https://evil.example')).toBe(403);
    expect(await by('http://localhost:3000')).toBe(403);
    expect(await by('null')).toBe(403);
    expect(await by('http://localhost:7700')).toBe(200);
  });

  it('shows a page that asks for no key', async () => {
    const { body } = await open().call({ url: '/' });
    expect(body).not.toContain('<form');
  });
});

describe('headers', () => {
  it.each(['/api/v1/tasks', '/no-such-route', '/docs'])(
    'R-AD6: of %s let no browser guess, frame or keep it, and name no software',
    async (url) => {
      const { headers } = await http().call({ url });
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'cache-control': 'no-store',
        'content-security-policy': expect.stringContaining("default-src 'none'") as string,
      });
      expect(Object.keys(headers)).not.toContain('server');
      expect(Object.keys(headers)).not.toContain('x-powered-by');
    },
  );

  it('R-AD6: CORS is off by default, and on for those who are named', async () => {
    const names = (answer: Answer) =>
      Object.keys(answer.headers).filter((name) => name.startsWith('access-control-'));
    const preflight = (origin: string) => ({
      method: 'OPTIONS',
      url: '/api/v1/tasks',
      headers: { origin, 'access-control-request-method': 'POST' },
    });
    expect(names(await open().call(preflight('https://app.example')))).toEqual([]);
    expect(names(await http().call(preflight('https://evil.example'), null))).toEqual([]);
    const allowed = await http().call(preflight('https://app.example'), null);
    expect([allowed.status, allowed.headers['access-control-allow-origin']]).toEqual([
      204,
      'https://app.example',
    ]);
    expect(allowed.headers['access-control-allow-headers']).toContain('authorization');
    expect(names(allowed)).not.toContain('access-control-allow-credentials');
    const called = await http().call({ ...tasks, headers: { origin: 'https://app.example' } });
    expect(called.headers['access-control-allow-origin']).toBe('https://app.example');
  });
});

describe('signing in', () => {
  const form = (url: string, body: string, headers: Record<string, string> = {}) => ({
    method: 'POST',
    url,
    body,
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      origin: 'http://localhost:80',
      host: 'localhost:80',
      ...headers,
    },
  });
  const signIn = (key: string, headers: Record<string, string> = {}) =>
    http().call(form('/sign-in', `key=${encodeURIComponent(key)}`, headers), null);
  const cookieOf = (answer: Answer) => String(answer.headers['set-cookie']).split(';')[0] ?? '';

  it('R-AD6: turns a key into a cookie that no script reads and that is not the key', async () => {
    const { key } = await http().make({ name: '<b>me</b>', scopes: ['read'] });
    expect((await http().call({ url: '/' }, null)).body).toContain('action="sign-in"');
    const answer = await signIn(key);
    expect([answer.status, answer.headers.location]).toEqual([303, './']);
    const cookie = String(answer.headers['set-cookie']);
    expect(cookie).toMatch(
      /^sluice_session=\S+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/,
    );
    expect(cookie).not.toContain(key);
    const headers = { cookie: cookieOf(answer) };
    const page = await http().call({ url: '/', headers }, null);
    expect(page.body).toContain('&quot;name&quot;:&quot;&lt;b&gt;me&lt;/b&gt;&quot;');
    expect(page.body).toContain('&quot;read&quot;:true,&quot;submit&quot;:false');
    expect((await http().call({ ...tasks, headers }, null)).status).toBe(200);
    // It is no key.
    const token = headers.cookie.slice('sluice_session='.length);
    expect((await http().call(tasks, token)).status).toBe(401);
  });

  it('R-AD6: what changes something must come from a page of this server', async () => {
    const cookie = cookieOf(await signIn(http().keys.admin));
    const pause = (headers: Record<string, string>) =>
      http().call(
        { ...post('/api/v1/queues/by-page/pause', {}), headers: { cookie, ...headers } },
        null,
      );
    const host = 'localhost:80';
    expect((await pause({ host })).status).toBe(403);
    expect((await pause({ host, origin: 'http://other.localhost' })).status).toBe(403);
    expect((await pause({ host, 'sec-fetch-site': 'same-site' })).status).toBe(403);
    expect((await pause({ host, 'sec-fetch-site': 'same-origin' })).status).toBe(200);
    expect((await pause({ host, origin: 'http://localhost:80' })).status).toBe(200);
    const foreign = await signIn(http().keys.admin, { origin: 'https://evil.example' });
    expect([foreign.status, foreign.headers['set-cookie']]).toEqual([403, undefined]);
  });

  it('R-AD6: a bad key is told so, signing out ends it, and so does the end of its key', async () => {
    const bad = await signIn('sluice_no');
    expect([bad.status, bad.headers['set-cookie']]).toEqual([401, undefined]);
    expect(bad.body).toContain('This is not a valid API key.');
    const { id, key } = await http().make({ scopes: ['read'] });
    const first = cookieOf(await signIn(key));
    const second = cookieOf(await signIn(key));
    const sees = async (cookie: string) =>
      (await http().call({ ...tasks, headers: { cookie } }, null)).status;
    const out = await http().call(form('/sign-out', '', { cookie: first }), null);
    expect([out.status, String(out.headers['set-cookie'])]).toEqual([
      303,
      expect.stringContaining('Max-Age=0'),
    ]);
    expect([await sees(first), await sees(second)]).toEqual([401, 200]);
    await http().engine.revokeKey(id);
    expect(await sees(second)).toBe(401);
  });

  it('R-AD6: over TLS the cookie is for TLS alone, when the proxy in front is trusted', async () => {
    const call = form('/sign-in', `key=${http().keys.read}`, { 'x-forwarded-proto': 'https' });
    const trusted = await http().call(call, null);
    expect(String(trusted.headers['set-cookie'])).toMatch(/^__Host-sluice_session=.*; Secure$/);
    const cookie = cookieOf(trusted);
    expect((await http().call({ ...tasks, headers: { cookie } }, null)).status).toBe(200);
    const trustsNobody = buildKeyedApp(http().engine);
    const plain = await inject(trustsNobody, call);
    expect(String(plain.headers['set-cookie'])).toMatch(/^sluice_session=.*Max-Age=43200$/);
    await trustsNobody.close();
  });
});

describe('the log', () => {
  it('R-AD6: holds no key, no hash and no cookie, at its finest level', () => {
    const all = logged.join('\n');
    expect(all).not.toMatch(/sluice_[0-9a-z]{12}_|[0-9a-f]{64}|Bearer|sluice_session/);
  });
});
