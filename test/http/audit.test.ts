import { describe, expect, it } from 'vitest';

import type { AuditPageWire } from '../../src/protocol/audit-schema.js';
import { useKeyedHttp } from './keyed.js';
import { inject, useHttp, type Call } from './support.js';

const http = useKeyedHttp();
const local = useHttp();
type Entry = AuditPageWire['items'][number];

const address = '10.9.8.7';
const from = { 'x-forwarded-for': address };

/** Done with a key of its own, so that what other tests do is not in the list. */
async function recorded(calls: readonly Call[]): Promise<{ entries: Entry[]; body: string }> {
  const { id, key } = await http().make({ name: 'an operator' });
  for (const call of calls) {
    const answer = await http().call({ ...call, headers: from }, key);
    expect({ call, ok: answer.status < 300, body: answer.body }).toMatchObject({ ok: true });
  }
  const page = await http().call({ url: `/api/v1/audit?actor=${id}&limit=100` });
  for (const entry of page.json<AuditPageWire>().items) {
    expect(entry.actor).toEqual({
      kind: 'key',
      key_id: id,
      key_name: 'an operator',
      session_id: null,
      address,
    });
  }
  return { entries: [...page.json<AuditPageWire>().items].reverse(), body: page.body };
}

const put = (url: string, body: unknown): Call => ({ method: 'PUT', url, body });
const post = (url: string, body: unknown = {}): Call => ({ method: 'POST', url, body });

describe('R-OB12: the audit', () => {
  it('tells of alerts: thresholds, and who silenced one', async () => {
    const url = '/api/v1/alerts/queue_depth';
    const { entries } = await recorded([
      put(url, { threshold: 7 }),
      put(url, { threshold: 7, off: true }),
      post(`${url}/silence`, { seconds: 60, note: 'a deploy' }),
      post(`${url}/silence`, { seconds: 0 }),
      put(url, {}),
    ]);
    const [first, second, silenced, heard, last] = entries;
    expect(first).toMatchObject({ action: 'alert.put', subject: 'queue_depth' });
    expect(first?.changes).toEqual({ threshold: { from: 5_000, to: 7 } });
    expect(second?.changes).toEqual({ off: { from: false, to: true } });
    expect(silenced).toMatchObject({
      action: 'alert.silence',
      changes: { silence_note: { from: null, to: 'a deploy' }, silenced_until: { from: null } },
    });
    expect(heard?.changes.silence_note).toEqual({ from: 'a deploy', to: null });
    expect(last?.changes).toEqual({
      threshold: { from: 7, to: 5_000 },
      off: { from: true, to: false },
    });
  });

  it('tells of queues: who changed what, from what to what', async () => {
    const url = '/api/v1/queues/audited';
    const limits = [{ unit: 'requests', rate: 5, per_seconds: 1, burst: null }];
    const { entries } = await recorded([
      put(url, { max_concurrency: 3 }),
      {
        method: 'PATCH',
        url,
        body: { max_concurrency: 4, limits: [{ unit: 'requests', rate: 5, per_seconds: 1 }] },
      },
      post(`${url}/pause`),
      post(`${url}/resume`),
    ]);
    expect(entries.map(({ action, subject, changes }) => ({ action, subject, changes }))).toEqual([
      {
        action: 'queue.put',
        subject: 'audited',
        changes: { max_concurrency: { from: null, to: 3 } },
      },
      {
        action: 'queue.change',
        subject: 'audited',
        changes: { max_concurrency: { from: 3, to: 4 }, limits: { from: [], to: limits } },
      },
      { action: 'queue.pause', subject: 'audited', changes: { paused: { from: false, to: true } } },
      {
        action: 'queue.resume',
        subject: 'audited',
        changes: { paused: { from: true, to: false } },
      },
    ]);
  });

  it('tells of shared limits', async () => {
    const url = '/api/v1/limits/audited';
    const { entries } = await recorded([
      put(url, { unit: 'tokens', rate: 5, per_seconds: 1 }),
      put(url, { unit: 'tokens', rate: 9, per_seconds: 1 }),
      { method: 'DELETE', url },
    ]);
    expect(entries.map(({ action, changes }) => [action, changes.rate])).toEqual([
      ['limit.put', { from: null, to: 5 }],
      ['limit.put', { from: 5, to: 9 }],
      ['limit.delete', { from: 9, to: null }],
    ]);
  });

  it('tells of whom a program acted for, as it says; a page of a browser may not', async () => {
    const { id, key } = await http().make({ name: 'an app' });
    const pause = async (headers: Readonly<Record<string, string>>) =>
      (await http().call({ ...post('/api/v1/queues/for-ada/pause'), headers }, key)).status;
    const named = (name: string) => ({ 'sluice-on-behalf-of': encodeURIComponent(name) });
    expect(await pause(named('Ada 火'))).toBe(200);
    expect(await pause({ ...named('Ada'), 'sec-fetch-site': 'same-origin' })).toBe(403);
    for (const bad of ['', 'x'.repeat(201), 'a\nb']) expect(await pause(named(bad))).toBe(400);
    expect(await pause({ 'sluice-on-behalf-of': '%zz' })).toBe(400);
    const page = await http().call({ url: `/api/v1/audit?actor=${id}` });
    expect(page.json<AuditPageWire>().items).toMatchObject([
      { action: 'queue.pause', details: { on_behalf_of: 'Ada 火' } },
    ]);
    const theirs = await http().call({
      url: `/api/v1/audit?actor=${encodeURIComponent('Ada 火')}`,
    });
    expect(theirs.json<AuditPageWire>().items).toHaveLength(1);
  });

  it('tells of keys, and never what they are', async () => {
    const { id, key } = await http().make({ name: 'an operator' });
    const made = await http().call(post('/api/v1/keys', { name: 'made', scopes: ['read'] }), key);
    const secret = made.json<{ id: string; key: string }>();
    await http().call({ method: 'DELETE', url: `/api/v1/keys/${secret.id}` }, key);
    const page = await http().call({ url: `/api/v1/audit?actor=${id}` });
    expect(page.json<AuditPageWire>().items).toMatchObject([
      { action: 'key.revoke', subject: secret.id },
      { action: 'key.create', subject: secret.id, details: { name: 'made', scopes: ['read'] } },
    ]);
    expect(page.body).not.toContain(secret.key);
    expect(page.body).not.toContain('hash');
  });

  it('tells of drains and bulk actions, with their filter and count', async () => {
    const registered = await http().call(
      post('/internal/workers/register', { capacity: 1 }),
      http().keys.worker,
    );
    const worker = registered.json<{ worker_id: string }>().worker_id;
    const submit = post('/api/v1/tasks', { task_type: 't', queue: 'audited-bulk', tags: ['b'] });
    for (let n = 0; n < 3; n += 1) await http().call(submit);
    const { entries } = await recorded([
      post(`/api/v1/workers/${worker}/drain`),
      post('/api/v1/tasks/reprioritise', { queue: 'audited-bulk', new_priority: 'low' }),
      post('/api/v1/tasks/cancel', { tag: 'b', queue: 'audited-bulk' }),
      post('/api/v1/tasks/replay', { queue: 'audited-bulk', status: 'cancelled' }),
      post('/api/v1/dlq/replay', { queue: 'audited-bulk' }),
    ]);
    expect(entries.map(({ action, subject, details }) => ({ action, subject, details }))).toEqual([
      { action: 'worker.drain', subject: worker, details: {} },
      {
        action: 'tasks.reprioritise',
        subject: null,
        details: { filter: { queue: 'audited-bulk' }, new_priority: 'low', count: 3 },
      },
      {
        action: 'tasks.cancel',
        subject: null,
        details: { filter: { tag: 'b', queue: 'audited-bulk' }, count: 3 },
      },
      {
        action: 'tasks.replay',
        subject: null,
        details: { filter: { queue: 'audited-bulk', status: 'cancelled' }, count: 3 },
      },
      {
        action: 'dead_letters.replay',
        subject: null,
        details: { filter: { queue: 'audited-bulk' }, count: 0 },
      },
    ]);
  });

  it('tells of people: when they signed in and out, and what they did to single tasks', async () => {
    const { id, key } = await http().make({ name: 'a person' });
    const own = { origin: 'http://localhost:80', host: 'localhost:80', 'x-forwarded-for': address };
    const form = { ...own, 'content-type': 'application/x-www-form-urlencoded' };
    const send = (call: Call) => inject(http().app, call);
    const signedIn = await send({
      method: 'POST',
      url: '/sign-in',
      body: `key=${key}`,
      headers: form,
    });
    const cookie = String(signedIn.headers['set-cookie']).split(';')[0] ?? '';
    const submitted = await http().call(
      post('/api/v1/tasks', { task_type: 't', queue: 'audited' }),
    );
    const task = submitted.json<{ task_id: string }>().task_id;
    await send({ method: 'DELETE', url: `/api/v1/tasks/${task}`, headers: { ...own, cookie } });
    await http().call({ method: 'DELETE', url: `/api/v1/tasks/${task}` }, key);
    await send({ method: 'POST', url: '/sign-out', body: '', headers: { ...form, cookie } });
    const page = await http().call({ url: `/api/v1/audit?actor=${id}` });
    const { items } = page.json<AuditPageWire>();
    expect(items.map(({ action }) => action)).toEqual([
      'session.sign_out',
      'task.cancel',
      'session.sign_in',
    ]);
    expect(items[1]?.subject).toBe(task);
    const [{ session_id: session } = { session_id: null }] = items.map(({ actor }) => actor);
    expect(session).toEqual(expect.any(String));
    for (const { actor } of items) {
      expect(actor).toMatchObject({
        kind: 'session',
        key_name: 'a person',
        session_id: session,
        address,
      });
    }
    expect(page.body).not.toContain(cookie.split('=')[1]);
  });

  it('tells what people changed and replayed of single tasks, and who ended whose session', async () => {
    const { id, key } = await http().make({ name: 'a person' });
    const own = { origin: 'http://localhost:80', host: 'localhost:80', 'x-forwarded-for': address };
    const signedIn = await inject(http().app, {
      method: 'POST',
      url: '/sign-in',
      body: `key=${key}`,
      headers: { ...own, 'content-type': 'application/x-www-form-urlencoded' },
    });
    const cookie = String(signedIn.headers['set-cookie']).split(';')[0] ?? '';
    const submitted = await http().call(
      post('/api/v1/tasks', { task_type: 't', queue: 'audited' }),
    );
    const task = submitted.json<{ task_id: string }>().task_id;
    const url = `/api/v1/tasks/${task}`;
    const calls: readonly Call[] = [
      { method: 'PATCH', url, body: { priority: 'high' } },
      { method: 'DELETE', url },
      post(`${url}/replay`),
    ];
    for (const call of calls) {
      const answer = await inject(http().app, { ...call, headers: { ...own, cookie } });
      expect({ call, status: answer.status, ok: answer.status < 300 }).toMatchObject({ ok: true });
    }
    const sessions = await http().call({ url: `/api/v1/keys/${id}/sessions` });
    const [session] = sessions.json<{ items: { id: string }[] }>().items;
    const sessionId = session?.id ?? '';
    await http().call({ method: 'DELETE', url: `/api/v1/keys/${id}/sessions/${sessionId}` });

    const page = await http().call({ url: `/api/v1/audit?actor=${id}` });
    expect(page.json<AuditPageWire>().items).toMatchObject([
      { action: 'task.replay', subject: task, details: {} },
      { action: 'task.cancel', subject: task },
      { action: 'task.change', subject: task, details: { priority: 'high' } },
      { action: 'session.sign_in' },
    ]);
    const ended = await http().call({ url: `/api/v1/audit?subject=${sessionId}` });
    const [end] = ended.json<AuditPageWire>().items;
    expect(end).toMatchObject({ action: 'session.end', actor: { kind: 'key' } });
    expect(end?.actor.key_id).not.toBe(id);
  });

  it('tells who it was without keys: somebody on this machine, or the program itself', async () => {
    await local().call(put('/api/v1/queues/by-hand', { max_concurrency: 1 }));
    await local().engine.pauseQueue('by-hand');
    const { items } = (
      await local().call({ url: '/api/v1/audit?subject=by-hand' })
    ).json<AuditPageWire>();
    expect(items).toMatchObject([
      { action: 'queue.pause', actor: { kind: 'process', address: null } },
      { action: 'queue.put', actor: { kind: 'local', address: '127.0.0.1' } },
    ]);
    expect((await local().engine.listAudit({ actor: 'local' })).items).toHaveLength(1);
  });

  it('is written with the change or not at all', async () => {
    const before = (await local().engine.listAudit()).items.length;
    const refused = await local().call(
      put('/api/v1/queues/refused', { limits: [{ use: 'none' }] }),
    );
    expect(refused.status).toBe(400);
    const gone = await local().call({ method: 'DELETE', url: '/api/v1/limits/none' });
    expect(gone.status).toBe(404);
    expect((await local().engine.listAudit()).items).toHaveLength(before);
  });

  it('pages, and refuses what it does not know', async () => {
    const first = await http().call({ url: '/api/v1/audit?limit=1' });
    const { next_cursor: cursor } = first.json<AuditPageWire>();
    const second = await http().call({ url: `/api/v1/audit?limit=1&cursor=${cursor ?? ''}` });
    expect(second.json<AuditPageWire>().items[0]?.id).toBeLessThan(
      first.json<AuditPageWire>().items[0]?.id ?? 0,
    );
    expect((await http().call({ url: '/api/v1/audit?action=nothing' })).status).toBe(400);
  });
});
