import { randomUUID } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Scope } from '../../src/domain/scopes.js';
import type { RouteConfinement, ScopedRoute } from '../../src/server/route-scopes.js';
import { describeOnPostgres } from '../integration/support.js';
import { until } from '../support/until.js';
import { bearer, buildKeyedApp, listening, useKeyedHttp } from './keyed.js';
import { inject, post, staleLease, unknownId, type Answer, type Call } from './support.js';
import { usingTasks } from './using-tasks.js';

const http = useKeyedHttp();
const asAdmin = usingTasks((call) => http().call(call));
const codeOf = (answer: Answer) => answer.json<{ code?: string }>().code;
const secret = { parameters: { prompt: 'of somebody else' }, user_id: 'u-7' };
const leaks = /of somebody else|u-7|private-idem/;

async function keyOf(
  scopes: readonly Scope[],
  confinement: { queues?: string[]; ownTasks?: boolean } = {},
): Promise<string> {
  return (await http().make({ scopes, ...confinement })).key;
}

const submitWith = async (key: string, draft: object): Promise<string> =>
  (await http().call(post('/api/v1/tasks', { task_type: 'chat', ...draft }), key)).json<{
    task_id: string;
  }>().task_id;
const idsIn = (answer: Answer) =>
  answer.json<{ items: { task_id: string }[] }>().items.map(({ task_id }) => task_id);

async function register(key: string, offer: object = {}): Promise<string> {
  const answer = await http().call(post('/internal/workers/register', offer), key);
  return answer.json<{ worker_id: string }>().worker_id;
}

describe('a key that may submit and not read', () => {
  it('R-AD6: is answered the receipt when it changes a task, and nothing else of it', async () => {
    const owner = await keyOf(['submit']);
    const taskId = await submitWith(owner, {
      ...{ queue: 'patched', idempotency_key: 'private-idem', delay_seconds: 60 },
      ...secret,
    });
    const change = { method: 'PATCH', url: `/api/v1/tasks/${taskId}`, body: { priority: 'high' } };
    const answer = await http().call(change, await keyOf(['submit']));
    expect([answer.status, Object.keys(answer.json()).toSorted()]).toEqual([
      200,
      [
        ...['created_at', 'estimated_start_time', 'estimated_wait_seconds', 'priority', 'queue'],
        ...['queue_position', 'status', 'task_id', 'trace_id'],
      ],
    ]);
    expect(answer.json()).toMatchObject({ task_id: taskId, priority: 'high', queue: 'patched' });
    expect(answer.body).not.toMatch(leaks);
    const read = await http().call(change, await keyOf(['submit', 'read']));
    expect(read.json()).toMatchObject({ parameters: secret.parameters, user_id: 'u-7' });
  });
});

/** One call for each route, of a task, a queue or a worker that the key does not reach. */
interface Foreign {
  readonly taskId: string;
  readonly queue: string;
  readonly worker: string;
}

const bodies: Readonly<Record<string, (foreign: Foreign) => unknown>> = {
  'POST /api/v1/tasks': ({ queue }) => ({ task_type: 'chat', queue }),
  'POST /api/v1/tasks/batch': ({ queue }) => ({ tasks: [{ task_type: 'chat', queue }] }),
  'POST /api/v1/tasks/cancel': ({ queue }) => ({ queue }),
  'POST /api/v1/tasks/replay': ({ queue }) => ({ queue }),
  'POST /api/v1/tasks/reprioritise': ({ queue }) => ({ queue, new_priority: 'high' }),
  'PATCH /api/v1/tasks/:task_id': () => ({ priority: 'low' }),
  'POST /internal/workers/register': ({ queue }) => ({ queues: [queue] }),
  'POST /internal/workers/:worker_id/poll': () => ({ available_capacity: 1 }),
  'POST /internal/workers/:worker_id/start': ({ taskId }) => held(taskId),
  'POST /internal/workers/:worker_id/progress': ({ taskId }) => ({
    ...held(taskId),
    progress_percent: 1,
  }),
  'POST /internal/workers/:worker_id/result': ({ taskId }) => ({
    ...held(taskId),
    status: 'completed',
  }),
  'POST /internal/workers/:worker_id/release': ({ taskId }) => ({ tasks: [held(taskId)] }),
  'POST /internal/workers/:worker_id/heartbeat': ({ taskId }) => ({
    ...{ current_load: 1, status: 'active', current_tasks: [taskId] },
  }),
  'PATCH /api/v1/queues/:name': () => ({ max_concurrency: 1 }),
  'PUT /api/v1/limits/:name': () => ({ unit: 'requests', rate: 1, per_seconds: 1 }),
  'POST /api/v1/keys': () => ({ name: 'more', scopes: ['admin'] }),
};

const queries: Readonly<Record<string, (foreign: Foreign) => string>> = {
  // Without a task the stream would not end.
  '/api/v1/events': ({ taskId }) => `?task_id=${taskId}`,
  '/api/v1/series': ({ queue }) => `?queue=${queue}`,
};

const held = (task_id: string) => ({ task_id, lease: staleLease });

function callOf({ method, path }: ScopedRoute, foreign: Foreign): Call {
  const url = path
    .replace(':task_id', foreign.taskId)
    .replace(':worker_id', foreign.worker)
    .replace(':name', foreign.queue)
    .replace(/:(key_id|session_id)/g, 'nobody');
  const query = queries[path]?.(foreign) ?? '';
  const takesBody = ['POST', 'PUT', 'PATCH'].includes(method);
  const body = bodies[`${method} ${path}`]?.(foreign) ?? {};
  return { method, url: url + query, ...(takesBody ? { body } : {}) };
}

/** What a confined key is told that calls a route about what it does not reach. */
const expected: Readonly<Record<RouteConfinement, (route: ScopedRoute) => readonly string[]>> = {
  task: ({ path }) => [
    path.startsWith('/api/v1/task-types/') ? '404 task_type_not_found' : '404 task_not_found',
  ],
  queue: ({ method, path }) => {
    if (path === '/api/v1/tasks/batch') return ['200 '];
    return method === 'GET' || method === 'HEAD'
      ? ['404 queue_not_found']
      : ['403 queue_forbidden'];
  },
  worker: ({ path }) =>
    path.endsWith('/register') ? ['403 queue_forbidden'] : ['409 worker_unknown'],
  filtered: ({ path }) => (path === '/api/v1/events' ? ['404 task_not_found'] : ['200 ']),
  refused: () => ['403 forbidden'],
};

describe('every route, with a key that is confined to other queues', () => {
  it('R-AD6: answers as if what it does not reach were not there', async () => {
    const queue = 'private-1';
    const dead = await asAdmin.makeDeadLetter(queue, 'PRIVATE_CODE');
    const taskId = await asAdmin.submit({ queue, ...secret });
    const worker = await register(http().keys.worker);
    const confined = await keyOf(['admin'], { queues: ['open-*', 'mail'] });
    const routes = http()
      .app.scopedRoutes()
      .filter(({ scope }) => scope !== 'open');
    expect(routes.length).toBeGreaterThan(40);
    const wrong: string[] = [];
    for (const route of routes) {
      const answer = await http().call(callOf(route, { taskId, queue, worker }), confined);
      const said = `${answer.status} ${answer.status < 400 ? '' : (codeIn(answer) ?? '')}`;
      const allowed = route.confined === null ? [] : expected[route.confined](route);
      const isRight = allowed.some((one) =>
        route.method === 'HEAD' ? one.startsWith(String(answer.status)) : one === said,
      );
      const isTight = !leaks.test(answer.body) && !answer.body.includes('PRIVATE_CODE');
      if (!isRight || !isTight) wrong.push(`${route.method} ${route.path}: ${said} ${answer.body}`);
    }
    expect(wrong).toEqual([]);
    const untouched = await http().call({ url: `/api/v1/tasks/${taskId}` });
    expect(untouched.json()).toMatchObject({ status: 'queued', priority: 'medium' });
    const left = await http().call({ url: `/api/v1/tasks/${dead}` });
    expect(left.json()).toMatchObject({ status: 'dead_letter' });
  });

  it('R-AD6: what is not reached and what does not exist are told apart by nobody', async () => {
    const taskId = await asAdmin.submit({ queue: 'private-2' });
    const confined = await keyOf(['admin'], { queues: ['open-*'] });
    const told = async (call: Call) => {
      const { status, body } = await http().call(call, confined);
      return [status, body.replaceAll(taskId, 'ID').replaceAll(unknownId, 'ID')];
    };
    const calls: ((id: string) => Call)[] = [
      (id) => ({ url: `/api/v1/tasks/${id}` }),
      (id) => ({ url: `/api/v1/tasks/${id}/wait?timeout_seconds=5` }),
      (id) => ({ url: `/api/v1/tasks/${id}/explain` }),
      (id) => ({ url: `/api/v1/events?task_id=${id}` }),
      (id) => ({ method: 'DELETE', url: `/api/v1/tasks/${id}` }),
      (id) => ({ method: 'PATCH', url: `/api/v1/tasks/${id}`, body: { priority: 'low' } }),
      (id) => post(`/api/v1/tasks/${id}/replay`, {}),
      (id) => post(`/api/v1/dlq/${id}/replay`, {}),
    ];
    for (const callFor of calls) {
      expect(await told(callFor(taskId))).toEqual(await told(callFor(unknownId)));
    }
  });
});

/** What a stream has sent so far, read on until it holds a text. */
function textOf(stream: Response): { until(wanted: string): Promise<string> } {
  const reader = (stream.body as ReadableStream<Uint8Array> | null)?.getReader();
  const decoder = new TextDecoder();
  let text = '';
  return {
    until: async (wanted) => {
      while (!text.includes(wanted)) {
        const chunk = await reader?.read();
        if (chunk?.value === undefined) throw new Error(`The stream ended without ${wanted}`);
        text += decoder.decode(chunk.value, { stream: true });
      }
      return text;
    },
  };
}

function codeIn(answer: Answer): string | undefined {
  return answer.body === '' ? undefined : codeOf(answer);
}

describe('a key that is confined to queues', () => {
  it('R-AD6: submits, lists, counts and cancels in these alone', async () => {
    const key = await keyOf(['admin'], { queues: ['team-*'] });
    const others = await asAdmin.submit({ queue: 'elsewhere', tags: ['mixed'] });
    const batch = await http().call(
      post('/api/v1/tasks/batch', {
        tasks: ['team-a', 'elsewhere', 'team-b'].map((queue) => ({
          ...{ task_type: 'chat', queue, tags: ['mixed'] },
        })),
      }),
      key,
    );
    const results = batch.json<{ results: { task?: { task_id: string }; error?: unknown }[] }>()
      .results;
    expect(results).toMatchObject([
      { task: { queue: 'team-a' } },
      { error: { code: 'queue_forbidden', status: 403 } },
      { task: { queue: 'team-b' } },
    ]);
    const own = results.flatMap(({ task }) => task?.task_id ?? []);
    const outside = await http().call(post('/api/v1/tasks', { task_type: 'chat' }), key);
    expect([outside.status, codeOf(outside)]).toEqual([403, 'queue_forbidden']);
    const listed = await http().call({ url: '/api/v1/tasks?limit=1000' }, key);
    expect(idsIn(listed).toSorted()).toEqual(own.toSorted());
    const queues = await http().call({ url: '/api/v1/queues' }, key);
    const names = queues.json<{ items: { name: string }[] }>().items.map(({ name }) => name);
    expect(names.toSorted()).toEqual(['team-a', 'team-b']);
    const count = await http().call({ url: '/api/v1/tasks/count?tag=mixed' }, key);
    expect(count.json()).toMatchObject({ count: 2 });
    const urgent = { tag: 'mixed', new_priority: 'high' };
    const changed = await http().call(post('/api/v1/tasks/reprioritise', urgent), key);
    expect(changed.json()).toMatchObject({ reprioritised: 2 });
    const cancelled = await http().call(post('/api/v1/tasks/cancel', { tag: 'mixed' }), key);
    expect(cancelled.json()).toEqual({ cancelled: 2, next_cursor: null });
    expect((await http().call({ url: `/api/v1/tasks/${others}` })).json()).toMatchObject({
      status: 'queued',
      priority: 'medium',
    });
  });

  it('R-AD6: sees, analyses and replays dead letters of these alone', async () => {
    const key = await keyOf(['admin'], { queues: ['dlq-mine'] });
    const mine = await asAdmin.makeDeadLetter('dlq-mine', 'MINE');
    const other = await asAdmin.makeDeadLetter('dlq-other', 'OTHER');
    const list = await http().call({ url: '/api/v1/dlq' }, key);
    expect([idsIn(list), list.json<{ total_count: number }>().total_count]).toEqual([[mine], 1]);
    // Both are dead letters of one second: once the first is counted, a wrong answer would name the second as well.
    const counted = (withKey?: string) =>
      until('the dead letter among the patterns', async () => {
        const { body } = await http().call({ url: '/api/v1/dlq/analysis' }, withKey);
        return body.includes(withKey === undefined ? 'OTHER' : 'MINE') && body;
      });
    expect(await counted()).toContain('MINE');
    expect(await counted(key)).not.toContain('OTHER');
    const none = await http().call(post('/api/v1/tasks/replay', { queue: 'dlq-other' }), key);
    expect(none.json()).toMatchObject({ replayed: 0 });
    const replayed = await http().call(post('/api/v1/dlq/replay', {}), key);
    expect(replayed.json()).toMatchObject({ replayed: 1 });
    expect((await http().call({ url: `/api/v1/tasks/${other}` })).json()).toMatchObject({
      status: 'dead_letter',
    });
  });

  it('R-AD6: brings its queues under no shared limit and out of none, and learns of no other', async () => {
    const key = await keyOf(['admin'], { queues: ['sharing-*'] });
    const limit = { unit: 'tokens', rate: 10, per_seconds: 60 };
    const put = (url: string, body: object, by?: string) =>
      http().call({ method: 'PUT', url, body }, by);
    for (const name of ['account', 'budget']) await put(`/api/v1/limits/${name}`, limit);
    const [free, bound] = ['/api/v1/queues/sharing-free', '/api/v1/queues/sharing-bound'];
    await put(bound, { limits: [{ use: 'account' }] });
    const asStored = {
      limits: [{ unit: 'requests', rate: 5, per_seconds: 1 }, { use: 'account' }],
    };
    for (const [url, limits] of [
      [free, [{ use: 'account' }]],
      [free, [{ use: 'no-such-limit' }]],
      [bound, []],
      [bound, [{ use: 'account' }, { use: 'budget' }]],
    ] as const) {
      const refused = await put(url, { limits }, key);
      expect([refused.status, codeOf(refused)]).toEqual([403, 'forbidden']);
      const patch = { method: 'PATCH', url, body: { limits } };
      expect(codeOf(await http().call(patch, key))).toBe('forbidden');
    }
    expect((await put(free, { limits: [limit] }, key)).status).toBe(200);
    const kept = await put(bound, asStored, key);
    expect(kept.json()).toMatchObject({ limits: [{ rate: 5 }, { use: 'account' }] });
    const patch = { method: 'PATCH', url: bound, body: { paused: true } };
    expect((await http().call(patch, key)).status).toBe(200);
  });

  it('R-AD6: hears of no other task, and of no statistics', async () => {
    const key = await keyOf(['read'], { queues: ['heard-*'] });
    const base = await listening(http().app);
    const stop = new AbortController();
    const listen = async (withKey: string) => {
      const headers = bearer(withKey);
      const stream = await fetch(`${base}/api/v1/events`, { headers, signal: stop.signal });
      return textOf(stream);
    };
    const [confined, unconfined] = [await listen(key), await listen(await keyOf(['read'], {}))];
    const other = await asAdmin.submit({ queue: 'unheard' });
    await unconfined.until('event: stats');
    // Batches go to all listeners in order: this one comes after the statistics.
    const heard = await asAdmin.submit({ queue: 'heard-1' });
    const text = await confined.until(heard);
    stop.abort();
    expect(text).not.toContain(other);
    expect(text).not.toContain('event: stats');
  });

  it('R-AD6: a worker with it is given tasks of these alone, also of a queue that is new', async () => {
    const key = await keyOf(['worker'], { queues: ['work-*'] });
    const worker = await register(key);
    await asAdmin.submit({ queue: 'not-for-it' });
    const poll = (body: object) =>
      http().call(
        post(`/internal/workers/${worker}/poll`, { available_capacity: 5, ...body }),
        key,
      );
    expect((await poll({})).json()).toMatchObject({ tasks: [] });
    const named = await poll({ queues: ['not-for-it'] });
    expect([named.status, codeOf(named)]).toEqual([403, 'queue_forbidden']);
    const waiting = poll({ wait_seconds: 30 });
    const taskId = await asAdmin.submit({ queue: 'work-new' });
    expect((await waiting).json()).toMatchObject({ tasks: [{ task_id: taskId }] });
    const exact = await keyOf(['worker'], { queues: ['work-exact'] });
    const second = await register(exact, { queues: ['work-exact'] });
    const third = await asAdmin.submit({ queue: 'work-exact' });
    const taken = await http().call(
      post(`/internal/workers/${second}/poll`, { available_capacity: 5 }),
      exact,
    );
    expect(taken.json()).toMatchObject({ tasks: [{ task_id: third }] });
  });

  it('R-AD6: a worker with it is given the task of a queue behind a thousand others that wait', async () => {
    const key = await keyOf(['worker'], { queues: ['many-*'] });
    const tasks = Array.from({ length: 1_000 }, (_, n) => ({
      ...{ task_type: 'of-others', queue: `many-${n}` },
    }));
    await http().call(post('/api/v1/tasks/batch', { tasks }));
    const taskId = await asAdmin.submit({ task_type: 'its-own', queue: 'many-z' });
    const worker = await register(key, { task_types: ['its-own'] });
    const answer = await http().call(
      post(`/internal/workers/${worker}/poll`, { available_capacity: 1, wait_seconds: 10 }),
      key,
    );
    expect(answer.json()).toMatchObject({ tasks: [{ task_id: taskId }] });
  });
});

describeOnPostgres('a worker with a key that is confined to queues', (server) => {
  it('R-AD6: is given a task whose queue has no row', async () => {
    const engine = await server().open();
    await engine.keys.watch();
    const app = buildKeyedApp(engine);
    onTestFinished(() => app.close());
    const { key } = await engine.createKey({ name: 'g', scopes: ['worker'], queues: ['gpu-*'] });
    const call = (path: string, body: object) =>
      inject(app, post(`/internal/workers/${path}`, body, bearer(key)));
    const { worker_id } = (await call('register', {})).json<{ worker_id: string }>();
    const { taskId } = await engine.submit({ taskType: 'chat', queue: 'gpu-1' });
    await until('the row', async () => (await rows()).length === 1);
    await server().sql(`delete from sluice.queues`);
    const answer = await call(`${worker_id}/poll`, { available_capacity: 1, wait_seconds: 5 });
    expect(answer.json()).toMatchObject({ tasks: [{ task_id: taskId }] });
    expect(await rows()).toEqual([]);
  });

  const rows = () => server().sql(`select name from sluice.queues where name = 'gpu-1'`);
});

describe('a key that is confined to its own tasks', () => {
  it('R-AD6: reaches what was submitted with it, living and ended, and nothing else', async () => {
    const mine = await keyOf(['submit', 'read'], { ownTasks: true });
    const other = await keyOf(['submit', 'read'], { ownTasks: true });
    const queue = 'shared';
    const [kept, cancelled, foreign] = [
      await submitWith(mine, { queue }),
      await submitWith(mine, { queue, delay_seconds: 60, idempotency_key: 'once' }),
      await submitWith(other, { queue, ...secret }),
    ];
    const ofAdmin = await asAdmin.submit({ queue });
    const call = (one: Call) => http().call(one, mine);
    expect((await call({ method: 'DELETE', url: `/api/v1/tasks/${cancelled}` })).status).toBe(200);
    expect(idsIn(await call({ url: '/api/v1/tasks' }))).toEqual([cancelled, kept]);
    expect(idsIn(await call({ url: '/api/v1/tasks?status=cancelled' }))).toEqual([cancelled]);
    expect(idsIn(await call({ url: '/api/v1/tasks?status=queued&limit=1' }))).toEqual([kept]);
    expect((await call({ url: `/api/v1/tasks/${cancelled}` })).json()).toMatchObject({
      status: 'cancelled',
    });
    for (const id of [foreign, ofAdmin]) {
      for (const method of ['GET', 'DELETE']) {
        const answer = await call({ method, url: `/api/v1/tasks/${id}` });
        expect([answer.status, codeOf(answer)]).toEqual([404, 'task_not_found']);
      }
      const patch = { method: 'PATCH', url: `/api/v1/tasks/${id}`, body: { priority: 'high' } };
      expect((await call(patch)).status).toBe(404);
    }
    const again = await submitWith(mine, { queue, delay_seconds: 60, idempotency_key: 'once' });
    expect(again).toBe(cancelled);
    const followed = await call({ url: '/api/v1/events' });
    expect([followed.status, codeOf(followed)]).toEqual([403, 'forbidden']);
  });

  it('R-AD6: learns why its task waits, and nothing of the task that is in its way', async () => {
    const [mine, other] = [
      await keyOf(['submit', 'read'], { ownTasks: true }),
      await keyOf(['submit', 'read'], { ownTasks: true }),
    ];
    const queue = 'in-the-way';
    const limits = [{ unit: 'tokens', rate: 1_000, per_seconds: 3_600, burst: 1_000 }];
    await http().call({ method: 'PUT', url: `/api/v1/queues/${queue}`, body: { limits } });
    const worker = await asAdmin.register();
    await submitWith(other, { queue, cost: { tokens: 1_000 } });
    const poll = { available_capacity: 1, queues: [queue] };
    await http().call(post(`/internal/workers/${worker}/poll`, poll));
    const dear = await submitWith(other, { queue, cost: { tokens: 777 } });
    const waiting = await submitWith(mine, { queue, cost: { tokens: 1 } });
    const counted = await http().call({ url: '/api/v1/tasks/count' }, mine);
    expect(counted.json()).toMatchObject({ count: 1, scanned: 1 });
    const explained = await http().call({ url: `/api/v1/tasks/${waiting}/explain` }, mine);
    expect(explained.body).toContain('Another task comes before it');
    expect(explained.body).not.toContain(dear);
    expect(explained.body).not.toContain('777');
  });

  it('R-AD6: reaches a task still after a worker completed it', async () => {
    const mine = await keyOf(['submit', 'read'], { ownTasks: true });
    const queue = 'own-completed';
    const taskId = await submitWith(mine, { queue });
    const worker = await asAdmin.register();
    const polled = await http().call(
      post(`/internal/workers/${worker}/poll`, { available_capacity: 1, queues: [queue] }),
    );
    const [claimed] = polled.json<{ tasks: { task_id: string; lease: string }[] }>().tasks;
    await http().call(post(`/internal/workers/${worker}/result`, done(claimed)));
    const answer = await http().call({ url: `/api/v1/tasks/${taskId}/wait` }, mine);
    expect(answer.json()).toMatchObject({ status: 'completed', result: { ok: true } });
    expect(idsIn(await http().call({ url: '/api/v1/tasks?status=completed' }, mine))).toEqual([
      taskId,
    ]);
  });

  it.each([['admin'], ['worker']] as const)('R-AD6: is no key of the scope %s', async (scope) => {
    const made = await http().call(
      post('/api/v1/keys', { name: 'x', scopes: [scope], own_tasks: true }),
    );
    expect([made.status, codeOf(made)]).toEqual([400, 'invalid_request']);
  });

  it.each(['a*b', '**', '', 'a b'])('R-AD6: "%s" is no pattern for queues', async (pattern) => {
    const draft = { name: 'x', scopes: ['read'], queues: [pattern] };
    expect((await http().call(post('/api/v1/keys', draft))).status).toBe(400);
    await expect(http().make({ scopes: ['read'], queues: [pattern] })).rejects.toMatchObject({
      code: 'invalid_request',
    });
  });
});

const done = (claimed: { task_id: string; lease: string } | undefined) => ({
  ...{ task_id: claimed?.task_id, lease: claimed?.lease },
  ...{ status: 'completed', result: { ok: true } },
});

describe('the id of a worker', () => {
  it('R-AD6: belongs to the key that registered it', async () => {
    const { task_id, lease, worker } = await asAdmin.claim('stolen');
    const thief = await keyOf(['worker']);
    const routes = http()
      .app.scopedRoutes()
      .filter(({ path }) => path.startsWith('/internal/workers/:worker_id/'));
    expect(routes.length).toBeGreaterThan(6);
    for (const route of routes) {
      const call = callOf(route, { taskId: task_id, queue: 'stolen', worker });
      const answer = await http().call(call, thief);
      expect([route.path, answer.status, codeOf(answer)]).toEqual([
        route.path,
        409,
        'worker_unknown',
      ]);
    }
    const report = { task_id, lease, status: 'completed', result: null };
    const answer = await http().call(post(`/internal/workers/${worker}/result`, report));
    expect(answer.json()).toMatchObject({ accepted: true });
  });

  it('R-AD6: naming a task does not take it from its worker', async () => {
    const { task_id, lease, worker } = await asAdmin.claim('adopted');
    const thiefKey = await keyOf(['worker']);
    const thief = await register(thiefKey);
    const beat = (leases?: string[]) =>
      http().call(
        post(`/internal/workers/${thief}/heartbeat`, {
          ...{ current_load: 1, status: 'active', current_tasks: [task_id] },
          ...(leases === undefined ? {} : { leases }),
        }),
        thiefKey,
      );
    expect((await beat()).json()).toMatchObject({ lost: [task_id] });
    expect((await beat([staleLease])).json()).toMatchObject({ lost: [task_id] });
    expect((await beat([staleLease, lease])).status).toBe(400);
    const task = await http().call({ url: `/api/v1/tasks/${task_id}` });
    expect(task.json()).toMatchObject({ assigned_worker_id: worker });
  });

  it('R-AD6: a heartbeat and a release may bring as many leases as a request carries', async () => {
    const worker = await register(http().keys.worker);
    const many = Array.from({ length: 14_000 }, () => randomUUID());
    const beat = { current_load: 1, status: 'active', current_tasks: many, leases: many };
    const call = (path: string, body: object) =>
      http().call(post(`/internal/workers/${worker}/${path}`, body), http().keys.worker);
    const heard = await call('heartbeat', beat);
    expect([heard.status, heard.json<{ lost: string[] }>().lost.length]).toEqual([200, 14_000]);
    const tasks = many.slice(0, 5_000).map((id) => ({ task_id: id, lease: id }));
    const spaced = `${JSON.stringify({ tasks })}${' '.repeat(1024 * 1024)}`;
    const released = await http().call(
      { ...post(`/internal/workers/${worker}/release`), ...asJson(spaced) },
      http().keys.worker,
    );
    expect(released.status).toBe(200);
  });
});

const asJson = (body: string) => ({ body, headers: { 'content-type': 'application/json' } });
