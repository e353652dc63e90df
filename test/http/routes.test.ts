import { describe, expect, it } from 'vitest';
import { errorCatalogue } from '../../src/domain/error-catalogue.js';
import { until } from '../support/until.js';
import { documentedRoutes } from './openapi.js';
import { post, staleLease, unknownId, useHttp, type Call, type Problem } from './support.js';
import { usingTasks, type Claimed } from './using-tasks.js';

const http = useHttp();
const call = (one: Call) => http().call(one);
const { submit, register, claim, makeDeadLetter } = usingTasks(call);

describe('tasks', () => {
  it('answers a submit with 201 and a receipt', async () => {
    const answer = await call(
      post('/api/v1/tasks', {
        task_type: 'chat',
        queue: 'submit-one',
        priority: 'high',
        parameters: { prompt: 'hi' },
        trace_id: 'trace-1',
      }),
    );
    expect(answer.status).toBe(201);
    expect(answer.json()).toMatchObject({
      status: 'queued',
      queue: 'submit-one',
      priority: 'high',
      queue_position: 0,
      trace_id: 'trace-1',
    });
  });

  it('ST4: answers the same idempotency key with 200 and the same task', async () => {
    const body = { task_type: 'chat', parameters: { n: 1 } };
    const headers = { 'idempotency-key': 'same-1' };
    const first = await call(post('/api/v1/tasks', body, headers));
    const again = await call(post('/api/v1/tasks', { ...body, idempotency_key: 'same-1' }));
    expect([first.status, again.status]).toEqual([201, 200]);
    expect(again.json().task_id).toBe(first.json().task_id);
  });

  it('ST4: refuses the same key for another body', async () => {
    const headers = { 'idempotency-key': 'same-2' };
    await call(post('/api/v1/tasks', { task_type: 'chat' }, headers));
    const other = await call(post('/api/v1/tasks', { task_type: 'embed' }, headers));
    expect([other.status, other.json().code]).toEqual([409, 'idempotency_conflict']);
  });

  it('gives parameters back as they came, whatever they hold', async () => {
    const parameters = { text: 'a\0b \ud800 ☃ 😀', deep: [[{ n: -0.5e-7 }]], constructor: null };
    const id = await submit({ queue: 'verbatim', parameters });
    const answer = await call({ url: `/api/v1/tasks/${id}` });
    expect(answer.json().parameters).toEqual(parameters);
  });

  it('answers a batch in order, and one bad task does not sink the rest', async () => {
    const tasks = [
      { task_type: 'chat' },
      { task_type: 'chat', priority: 'urgent' },
      { task_type: 'chat', parameters: { text: 'x'.repeat(300_000) } },
      { task_type: 'chat', run_at: '2030-01-01T00:00:00Z', delay_seconds: 1 },
      7,
      { task_type: 'embed', queue: 'batch' },
    ];
    const answer = await call(post('/api/v1/tasks/batch', { tasks }));
    expect(answer.status).toBe(200);
    const { results } = answer.json<{ results: { task?: object; error?: Problem }[] }>();
    expect(results.map(({ error }) => error?.code ?? 'accepted')).toEqual([
      'accepted',
      'invalid_request',
      'payload_too_large',
      'invalid_request',
      'invalid_request',
      'accepted',
    ]);
    expect(results[1]?.error?.errors).toEqual([
      { path: '/tasks/1/priority', message: 'must be one of high, medium, low' },
    ]);
    expect(results[5]?.task).toMatchObject({ queue: 'batch', queue_position: null });
  });

  it('accepts a batch as one task a line', async () => {
    const lines = '{"task_type":"chat"}\r\n\n{"task_type":\n{"task_type":"embed"}';
    const headers = { 'content-type': 'application/x-ndjson' };
    const answer = await call(post('/api/v1/tasks/batch', lines, headers));
    const { results } = answer.json<{ results: { error?: Problem }[] }>();
    expect(results.map(({ error }) => error?.code)).toEqual([undefined, 'invalid_json', undefined]);
  });

  it('gets a task, and its history when asked', async () => {
    const { task_id, lease, worker } = await claim('history');
    const report = { task_id, lease, status: 'completed', result: { ok: true } };
    await call(post(`/internal/workers/${worker}/result`, report));
    const plain = await call({ url: `/api/v1/tasks/${task_id.toUpperCase()}` });
    expect(plain.json()).toMatchObject({ task_id, status: 'completed', result: { ok: true } });
    expect(plain.json()).not.toHaveProperty('attempts');
    const full = await call({ url: `/api/v1/tasks/${task_id}?include=history` });
    expect(full.json().attempts).toMatchObject([{ attempt: 1, outcome: 'succeeded' }]);
    expect(full.json().state_history).toMatchObject([
      { state: 'queued' },
      {},
      { state: 'completed' },
    ]);
  });

  it('waits for a task, and answers with its state when the time is over', async () => {
    const id = await submit({ queue: 'nobody-takes-this' });
    const answer = await call({ url: `/api/v1/tasks/${id}/wait?timeout_seconds=0` });
    expect([answer.status, answer.json().status]).toEqual([200, 'queued']);
  });

  it('explains why a task does not run', async () => {
    const id = await submit({ queue: 'explained', delay_seconds: 3600 });
    const answer = await call({ url: `/api/v1/tasks/${id}/explain` });
    expect(answer.json()).toMatchObject({
      task_id: id,
      status: 'pending',
      reasons: [{ kind: 'scheduled' }],
    });
  });

  it('lists tasks by filter, newest first, page by page', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 3; i += 1) ids.push(await submit({ queue: 'listed', tags: ['t1'] }));
    const first = await call({ url: '/api/v1/tasks?queue=listed&tag=t1&limit=2' });
    const page = first.json<{ items: { task_id: string }[]; next_cursor: string }>();
    const cursor = encodeURIComponent(page.next_cursor);
    const second = await call({
      url: `/api/v1/tasks?queue=listed&tag=t1&limit=2&cursor=${cursor}`,
    });
    const rest = second.json<{ items: { task_id: string }[]; next_cursor: null }>();
    const listed = [...page.items, ...rest.items].map(({ task_id }) => task_id);
    expect(listed).toEqual(ids.reverse());
  });

  it('cancels a task, twice with the same answer', async () => {
    const id = await submit({ queue: 'cancelled' });
    const first = await call({ method: 'DELETE', url: `/api/v1/tasks/${id}` });
    const again = await call({ method: 'DELETE', url: `/api/v1/tasks/${id}` });
    expect(first.json()).toEqual({
      task_id: id,
      status: 'cancelled',
      was_executing: false,
      worker_notified: false,
    });
    expect(again.json()).toEqual(first.json());
  });

  it('does not cancel what has ended otherwise', async () => {
    const { task_id, lease, worker } = await claim('ended');
    await call(post(`/internal/workers/${worker}/result`, { task_id, lease, status: 'completed' }));
    const answer = await call({ method: 'DELETE', url: `/api/v1/tasks/${task_id}` });
    expect([answer.status, answer.json().code]).toEqual([409, 'task_ended']);
  });

  it('cancels by filter', async () => {
    await submit({ queue: 'swept' });
    await submit({ queue: 'swept' });
    const answer = await call(post('/api/v1/tasks/cancel', { queue: 'swept' }));
    expect(answer.json()).toEqual({ cancelled: 2, next_cursor: null });
  });

  it('changes what has not started, and refuses to change what has', async () => {
    const id = await submit({ queue: 'changed' });
    const changed = await call({
      method: 'PATCH',
      url: `/api/v1/tasks/${id}`,
      body: { priority: 'high' },
    });
    expect(changed.json()).toMatchObject({ task_id: id, priority: 'high' });
    const { task_id } = await claim('started');
    const refused = await call({
      method: 'PATCH',
      url: `/api/v1/tasks/${task_id}`,
      body: { priority: 'high' },
    });
    expect([refused.status, refused.json().code]).toEqual([409, 'task_started']);
  });

  it('replays a dead letter, and refuses what has not ended or was completed', async () => {
    const dead = await makeDeadLetter('replayed');
    const body = { reset_retry_count: true, new_priority: 'high' };
    const replayed = await call(post(`/api/v1/tasks/${dead}/replay`, body));
    expect(replayed.json()).toMatchObject({ task_id: dead, priority: 'high', retry_count: 0 });
    const waiting = await call(post(`/api/v1/tasks/${dead}/replay`));
    expect([waiting.status, waiting.json().code]).toEqual([409, 'task_not_ended']);
    const { task_id, lease, worker } = await claim('not-replayed');
    await call(post(`/internal/workers/${worker}/result`, { task_id, lease, status: 'completed' }));
    const completed = await call(post(`/api/v1/tasks/${task_id}/replay`));
    expect([completed.status, completed.json().code]).toEqual([409, 'task_completed']);
  });
});

describe('queues and limits', () => {
  it('puts, gets, lists, pauses and resumes a queue whose name holds a slash', async () => {
    const url = '/api/v1/queues/openai%2Fgpt-4o';
    const settings = {
      limits: [{ unit: 'requests', rate: 500, per_seconds: 60 }],
      max_concurrency: 50,
      ageing: null,
    };
    const put = await call({ method: 'PUT', url, body: settings });
    expect(put.json()).toMatchObject({
      name: 'openai/gpt-4o',
      limits: [{ unit: 'requests', rate: 500, per_seconds: 60, burst: null }],
      max_concurrency: 50,
      max_ready: 10_000,
      max_active: null,
      paused: false,
      ageing: null,
    });
    const until = '2100-01-01T00:00:00.000Z';
    const paused = await call(post(`${url}/pause`, { until }));
    expect(paused.json()).toMatchObject({ paused: true, paused_until: until });
    expect((await call(post(`${url}/resume`))).json()).toMatchObject({ paused: false });
    const replaced = await call({ method: 'PUT', url, body: {} });
    expect(replaced.json()).toMatchObject({
      limits: [],
      max_concurrency: null,
      ageing: {
        low_to_medium_seconds: 600,
        low_to_high_seconds: 1800,
        medium_to_high_seconds: 1200,
      },
    });
    expect((await call({ url })).json()).toMatchObject({ live: { running: 0, circuit: 'closed' } });
    const list = await call({ url: '/api/v1/queues?limit=1000' });
    const { items } = list.json<{ items: { name: string }[] }>();
    expect(items.map(({ name }) => name)).toContain('openai/gpt-4o');
  });

  it('keeps a shared limit while a queue uses it', async () => {
    const url = '/api/v1/limits/account';
    const limit = { unit: 'tokens', rate: 30_000, per_seconds: 60 };
    const put = await call({ method: 'PUT', url, body: limit });
    expect(put.json()).toEqual({ name: 'account', ...limit, burst: null, in_force: true });
    const queue = '/api/v1/queues/shares';
    await call({ method: 'PUT', url: queue, body: { limits: [{ use: 'account' }] } });
    const inUse = await call({ method: 'DELETE', url });
    expect([inUse.status, inUse.json().code]).toEqual([409, 'limit_in_use']);
    expect((await call({ url: '/api/v1/limits' })).json().items).toHaveLength(1);
    await call({ method: 'PUT', url: queue, body: {} });
    expect((await call({ method: 'DELETE', url })).status).toBe(204);
    expect((await call({ url })).status).toBe(404);
  });
});

describe('dead letters', () => {
  it('RE5: lists, analyses and replays them', async () => {
    const one = await makeDeadLetter('dlq-routes', 'INVALID_INPUT');
    await makeDeadLetter('dlq-routes', 'BROKEN');
    const list = await call({ url: '/api/v1/dlq?queue=dlq-routes&code=INVALID_INPUT' });
    expect(list.json()).toMatchObject({ total_count: 1, items: [{ task_id: one }] });
    const here = await until('both among the patterns', async () => {
      const analysis = await call({ url: '/api/v1/dlq/analysis' });
      const { patterns } = analysis.json<{
        patterns: { id: string; queues: { queue: string }[]; code: string }[];
      }>();
      const ofQueue = patterns.filter(({ queues }) =>
        queues.some(({ queue }) => queue === 'dlq-routes'),
      );
      return ofQueue.length === 2 && ofQueue;
    });
    const id = here.find(({ code }) => code === 'BROKEN')?.id ?? '';
    const ofPattern = await call({ url: `/api/v1/dlq?queue=dlq-routes&pattern=${id}` });
    expect(ofPattern.json()).toMatchObject({
      total_count: 1,
      items: [{ error: { code: 'BROKEN' } }],
    });
    expect((await call(post(`/api/v1/dlq/${one}/replay`))).json()).toMatchObject({ task_id: one });
    const body = { queue: 'dlq-routes', since: '2020-01-01T00:00:00Z', per_second: 5 };
    const rest = await call(post('/api/v1/dlq/replay', body));
    expect(rest.json()).toEqual({
      replayed: 1,
      last_due_at: expect.any(String) as string,
      next_cursor: null,
    });
    const wrong = await call(post('/api/v1/dlq/replay', { ...body, cursor: 'bm90LW91cnM' }));
    expect([wrong.status, wrong.json().code]).toEqual([400, 'invalid_request']);
  });
});

describe('workers', () => {
  it('takes a task from register to result, one and many', async () => {
    const queue = 'worked';
    const ids = [await submit({ queue }), await submit({ queue })];
    const registered = await call(post('/internal/workers/register', { capacity: 5, name: 'w' }));
    expect(registered.json()).toMatchObject({ heartbeat_interval_ms: 10_000, lease_ms: 30_000 });
    const worker = registered.json<{ worker_id: string }>().worker_id;
    const polled = await call(
      post(`/internal/workers/${worker}/poll`, {
        available_capacity: 2,
        wait_seconds: 20,
        prefetch: true,
        queues: [queue],
      }),
    );
    const { tasks } = polled.json<{ tasks: Claimed[] }>();
    expect(tasks.map(({ task_id }) => task_id)).toEqual(ids);
    expect(polled.json()).toMatchObject({ cancelled: [], drain: false });
    const [first, second] = tasks.map(({ task_id, lease }) => ({ task_id, lease }));
    const started = await call(post(`/internal/workers/${worker}/start`, first));
    expect(started.json()).toEqual({ acknowledged: true });
    const progressed = await call(
      post(`/internal/workers/${worker}/progress`, {
        ...first,
        progress_percent: 50,
        status_message: 'half',
      }),
    );
    expect(progressed.json()).toEqual({ acknowledged: true });
    const beat = await call(
      post(`/internal/workers/${worker}/heartbeat`, {
        current_load: 2,
        status: 'active',
        current_tasks: ids,
      }),
    );
    expect(beat.json()).toEqual({
      acknowledged: true,
      should_drain: false,
      cancelled: [],
      lost: [],
    });
    const done = { ...first, status: 'completed', result: 1, execution_duration_seconds: 0.5 };
    const one = await call(post(`/internal/workers/${worker}/result`, done));
    expect(one.json()).toEqual({ task_id: ids[0], accepted: true, status: 'completed' });
    const many = await call(
      post(`/internal/workers/${worker}/result`, {
        results: [done, { ...second, lease: staleLease, status: 'completed' }],
      }),
    );
    expect(many.json()).toEqual({
      results: [
        { task_id: ids[0], accepted: true, status: 'completed' },
        { task_id: ids[1], accepted: false, reason: 'lease_lost' },
      ],
    });
    const released = await call(
      post(`/internal/workers/${worker}/release`, {
        tasks: [second, { task_id: unknownId, lease: staleLease }],
      }),
    );
    expect(released.json()).toEqual({ released: [ids[1]], lost: [unknownId] });
    const left = await call(post(`/internal/workers/${worker}/deregister`));
    expect(left.json()).toEqual({ acknowledged: true });
  });

  it('fails the attempt whose result is larger than can be kept, and does not retry it', async () => {
    const { task_id, lease, worker } = await claim('too-large');
    const report = { task_id, lease, status: 'completed', result: 'x'.repeat(1024 * 1024) };
    const answer = await call(post(`/internal/workers/${worker}/result`, report));
    expect(answer.json()).toEqual({
      task_id,
      accepted: true,
      status: 'dead_letter',
      next: { kind: 'dead_letter', reason: 'RESULT_TOO_LARGE is not retried' },
    });
    const task = await call({ url: `/api/v1/tasks/${task_id}` });
    expect(task.json()).toMatchObject({ error: { code: 'RESULT_TOO_LARGE', retriable: false } });
  });

  it('keeps the failure of a service that answers with what Postgres text can not hold', async () => {
    const { task_id, lease, worker } = await claim('odd-message');
    const error = { code: 'BROKEN', message: `a\0b\ud800${'c'.repeat(20_000)}`, retriable: false };
    const report = { task_id, lease, status: 'failed', error };
    const answer = await call(post(`/internal/workers/${worker}/result`, report));
    expect(answer.json()).toMatchObject({ accepted: true, status: 'dead_letter' });
    const task = await call({ url: `/api/v1/tasks/${task_id}` });
    const kept = task.json<{ error: { message: string } }>().error.message;
    expect([kept.slice(0, 5), kept.length]).toEqual(['a\uFFFDb\uFFFDc', 10_000]);
  });

  it('shows workers to people, and drains one', async () => {
    const worker = await register({
      name: 'shown',
      task_types: ['chat'],
      capabilities: ['gpu'],
    });
    const url = `/api/v1/workers/${worker}`;
    expect((await call({ url })).json()).toMatchObject({
      name: 'shown',
      status: 'active',
      capacity: 100,
    });
    const list = await call({ url: '/api/v1/workers?limit=1000' });
    const { items } = list.json<{ items: { worker_id: string }[] }>();
    expect(items.map(({ worker_id }) => worker_id)).toContain(worker);
    await call(post(`${url}/drain`));
    const polled = await call(post(`/internal/workers/${worker}/poll`, { available_capacity: 1 }));
    expect(polled.json()).toEqual({ tasks: [], cancelled: [], drain: true });
  });
});

describe('operations', () => {
  it.each([
    ['/healthz', 'live'],
    ['/readyz', 'ready'],
    ['/healthz/progress', 'progressing'],
  ])('%s is 200', async (url, status) => {
    const answer = await call({ url });
    expect([answer.status, answer.json()]).toEqual([200, { status }]);
  });

  it('OB1: shows metrics with the prefix of the project', async () => {
    await submit({ queue: 'measured' });
    const depth = 'sluice_queue_depth{queue="measured",priority="medium"} 1';
    // Depth is right to the last few seconds.
    const { body, headers } = await until('the depth to be counted', async () => {
      const answer = await call({ url: '/metrics' });
      return answer.body.includes(depth) ? answer : null;
    });
    expect(headers['content-type']).toMatch(/^text\/plain/);
    expect(body).toMatch(
      /sluice_tasks_total\{status="completed",queue="[^"]+",task_type="[^"]+"\} [1-9]/,
    );
    expect(body).toMatch(/sluice_task_state_transitions_total\{from="new",to="queued"\} [1-9]/);
    expect(body).toMatch(
      /sluice_task_wait_seconds_count\{priority="medium",queue="[^"]+",task_type="[^"]+"\} [1-9]/,
    );
    expect(body).toMatch(/sluice_tasks_dlq_total\{reason="[^"]+"\} [1-9]/);
    expect(body.match(/^sluice_/gm)?.length).toBe(body.match(/^[^#\n]/gm)?.length);
  });

  it('answers statistics', async () => {
    const answer = await call({ url: '/api/v1/queue/stats' });
    expect(answer.json()).toMatchObject({ queues: { high: {}, medium: {}, low: {} }, workers: {} });
  });

  it.each(['/', '/docs'])('%s is a page that loads nothing from elsewhere', async (url) => {
    const { status, headers, body } = await call({ url });
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(body).not.toMatch(/(src|href)="(https?:)?\/\/|<script>| on\w+=/);
  });

  it('/ lets its page run no script and no style but its own files', async () => {
    const { headers, body } = await call({ url: '/' });
    expect(headers['content-security-policy']).toContain("script-src 'self'; style-src 'self'");
    const files = [...body.matchAll(/"\.\/(assets\/[^"]+)"/g)].map(([, file]) => `/${file ?? ''}`);
    expect(files).toHaveLength(2);
    for (const url of files) {
      const asset = await call({ url, headers: { 'accept-encoding': 'gzip' } });
      expect([asset.status, asset.headers['content-encoding']]).toEqual([200, 'gzip']);
      expect(asset.headers['cache-control']).toContain('immutable');
    }
    expect((await call({ url: '/assets/files.json' })).status).toBe(404);
  });

  it('/docs names every route and every error code', async () => {
    const { body } = await call({ url: '/docs' });
    for (const { path } of await documentedRoutes(call)) expect(body).toContain(path);
    for (const code of Object.keys(errorCatalogue)) expect(body).toContain(`id="${code}"`);
  });
});
