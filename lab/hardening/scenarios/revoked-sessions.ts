import { setTimeout as delay } from 'node:timers/promises';
import { NodeHttpApi } from '../../../src/client/node-http-api.js';
import type { CreatedKey } from '../../../src/protocol/keys-api.js';
import type { Lab } from '../../shared/lab.js';
import { count, judged, ms, type Row, type Scenario } from '../../shared/scenario.js';
import { Fleet } from '../../workers/fleet.js';

const servers = 2;
const peoplePerKey = 4;
const graceMs = 1_000;
const frozenMs = 3_000;

/** What a server refuses a session with, and what somebody holds who signed in. */
interface SignedIn {
  readonly key: CreatedKey;
  readonly cookie: string;
}

export const revokedSessions: Scenario = {
  name: 'revoked-sessions',
  about:
    'keys are revoked while people sign in with them at two servers, with calls that wait and a server that is suspended',
  run: async (lab) => [
    ...(await storm(lab, 'redis')),
    ...(await storm(lab, 'memory')),
    await suspendedRow(lab),
  ],
};

const serveArgs = ['--trust-proxy', '127.0.0.1'];

async function storm(lab: Lab, ready: 'redis' | 'memory'): Promise<Row[]> {
  await using fleet = await Fleet.start(lab.postgresUrl, { servers, ready, serveArgs });
  const where = ready === 'redis' ? 'two servers, Redis' : 'two servers, no Redis';
  return await revokeAmongSignIns(lab, fleet, fleet.urls, where);
}

async function revokeAmongSignIns(
  lab: Lab,
  fleet: Fleet,
  urls: readonly string[],
  where: string,
): Promise<Row[]> {
  const urlOf = (n: number) => urls[n % urls.length] ?? fleet.url(0);
  const admin = await new NodeHttpApi(fleet.url(0)).createKey({ name: 'ops', scopes: ['admin'] });
  const api = new NodeHttpApi(fleet.url(0), { apiKey: admin.key });
  const keys: CreatedKey[] = [];
  for (let n = 0; n < lab.size(60, 10); n += 1) {
    keys.push(await api.createKey({ name: `person ${n}`, scopes: ['read', 'submit'] }));
  }
  const signedIn: SignedIn[] = [];
  const signIns: number[] = [];
  let isOver = false;
  const person = async (key: CreatedKey, url: string) => {
    while (!isOver) {
      const { status, cookie } = await signIn(url, key.key);
      signIns.push(status);
      if (cookie !== null) signedIn.push({ key, cookie });
      if (status === 401) return;
      if (status === 429) await delay(50);
    }
  };
  const people = keys.flatMap((key) =>
    Array.from({ length: peoplePerKey }, (_, n) => person(key, urlOf(n))),
  );
  await delay(lab.size(3_000, 500));
  const streams = await Promise.all(keys.map((key, n) => openStream(urlOf(n), key.key)));
  const revoked = await Promise.all(keys.map((key, n) => revoke(urlOf(n), admin, key)));
  const revokedMs = performance.now();
  const streamsEndedMs = Promise.all(streams.map((stream) => stream.ended)).then(
    (ends) => Math.max(...ends) - revokedMs,
  );
  await delay(graceMs);
  const stillGood = new Set<string>();
  let stillGoodSessions = 0;
  for (const { key, cookie } of signedIn.slice()) {
    const headers = { cookie };
    const statuses = await Promise.all(urls.map((url) => statusOf(url, headers)));
    if (!statuses.includes(200)) continue;
    stillGoodSessions += 1;
    stillGood.add(key.id);
  }
  isOver = true;
  await Promise.all(people);
  const failedRevokes = revoked.filter((status) => status !== 200).length;
  const failedSignIns = signIns.filter((status) => status >= 500).length;
  const lastStreamMs = await streamsEndedMs;
  return [
    judged(
      {
        what: `${where}: of ${keys.length} revoked keys, those with a session that is good a second later; such sessions of ${count(signedIn.length)}`,
        measured: `${stillGood.size}; ${stillGoodSessions}`,
        numbers: { keys: stillGood.size, sessions: stillGoodSessions, all: signedIn.length },
      },
      '0; 0',
      stillGood.size === 0,
    ),
    judged(
      {
        what: `${where}: revocations that were not answered 200; sign-ins answered 5xx, of ${count(signIns.length)}`,
        measured: `${failedRevokes}; ${failedSignIns}`,
        numbers: { failedRevokes, failedSignIns, signIns: signIns.length },
      },
      '0; 0',
      failedRevokes === 0 && failedSignIns === 0,
    ),
    judged(
      {
        what: `${where}: from the last revocation to the end of the last event stream of a revoked key, of ${streams.length}`,
        measured: ms(Math.max(0, lastStreamMs)),
        numbers: { lastStreamMs },
      },
      `≤ ${ms(graceMs)}`,
      lastStreamMs <= graceMs,
    ),
  ];
}

/** A server that was suspended while a key was revoked elsewhere has an old copy of the keys. */
async function suspendedRow(lab: Lab): Promise<Row> {
  await using fleet = await Fleet.start(lab.postgresUrl, { servers, ready: 'redis', serveArgs });
  const admin = await new NodeHttpApi(fleet.url(0)).createKey({ name: 'ops', scopes: ['admin'] });
  const api = new NodeHttpApi(fleet.url(0), { apiKey: admin.key });
  const suspended = fleet.serverPids[1];
  if (suspended === undefined) throw new Error('There is no second server');
  const statuses: number[] = [];
  for (let round = 0; round < lab.size(5, 1); round += 1) {
    const key = await api.createKey({ name: 'leaked', scopes: ['read'] });
    const headers = { authorization: `Bearer ${key.key}` };
    await fleet.until('the other server knows the key', async () => {
      return (await statusOf(fleet.url(1), headers)) === 200;
    });
    process.kill(suspended, 'SIGSTOP');
    await api.revokeKey(key.id);
    await delay(frozenMs);
    // Sent before it runs again: the first that it reads.
    const calls = Array.from({ length: 5 }, () => statusOf(fleet.url(1), headers));
    process.kill(suspended, 'SIGCONT');
    statuses.push(...(await Promise.all(calls)));
  }
  const letIn = statuses.filter((status) => status === 200).length;
  return judged(
    {
      what: `a server suspended for ${ms(frozenMs)} while a key was revoked at another: calls with it that are let in afterwards, of ${statuses.length}`,
      measured: String(letIn),
      numbers: { letIn, calls: statuses.length },
    },
    '0',
    letIn === 0,
  );
}

let addresses = 0;

/** Each from an address of its own, so that only the limit of the key counts. */
async function signIn(
  url: string,
  key: string,
): Promise<{ status: number; cookie: string | null }> {
  addresses += 1;
  const address = `10.${(addresses >> 16) & 255}.${(addresses >> 8) & 255}.${addresses & 255}`;
  const response = await fetch(`${url}/sign-in`, {
    method: 'POST',
    redirect: 'manual',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      origin: url,
      'x-forwarded-for': address,
    },
    body: `key=${key}`,
  });
  await response.arrayBuffer();
  const cookie = response.headers.get('set-cookie')?.split(';')[0] ?? null;
  return { status: response.status, cookie: response.status === 303 ? cookie : null };
}

async function revoke(url: string, admin: CreatedKey, key: CreatedKey): Promise<number> {
  const response = await fetch(`${url}/api/v1/keys/${key.id}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${admin.key}` },
  });
  await response.arrayBuffer();
  return response.status;
}

async function statusOf(url: string, headers: Readonly<Record<string, string>>): Promise<number> {
  const response = await fetch(`${url}/api/v1/queues`, { headers });
  await response.arrayBuffer();
  return response.status;
}

async function openStream(url: string, key: string): Promise<{ ended: Promise<number> }> {
  const response = await fetch(`${url}/api/v1/events`, {
    headers: { authorization: `Bearer ${key}` },
  });
  if (response.status !== 200) throw new Error(`A stream was answered ${response.status}`);
  const ended = response.text().then(
    () => performance.now(),
    () => performance.now(),
  );
  return { ended };
}
