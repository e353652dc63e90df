import { describe, expect, it } from 'vitest';
import { unknownId, staleLease, post, useHttp, type Call, type Problem } from './support.js';
import { usingTasks } from './using-tasks.js';

interface Queue {
  version: number;
  limits: object[];
  paused: boolean;
  paused_until: string | null;
  max_concurrency: number | null;
  live: {
    tokens: Record<string, number>;
    next_token_in_ms: number | null;
    paused_until: string | null;
    paused_why: string | null;
    running: number;
  };
}

const http = useHttp();
const call = (one: Call) => http().call(one);
const { submit, claim, register } = usingTasks(call);

const put = (url: string, body: unknown): Call => ({ method: 'PUT', url, body });
const putQueue = (name: string, body: unknown) => call(put(`/api/v1/queues/${name}`, body));
const getQueue = async (name: string) =>
  (await call({ url: `/api/v1/queues/${name}` })).json<Queue>();

/** Slow enough that nothing comes back while a test looks. */
const slow = { unit: 'requests', rate: 100, per_seconds: 31_536_000, burst: 3 };
const slowTokens = { unit: 'tokens', rate: 100, per_seconds: 31_536_000, burst: 1_000 };

describe('limits over HTTP', () => {
  it('R-CH5: a queue tells what is left of each unit and when the next token comes', async () => {
    await putQueue('live', { limits: [slow, slowTokens] });
    const full = await getQueue('live');
    expect(full.live).toMatchObject({
      tokens: { requests: 3, tokens: 1_000 },
      next_token_in_ms: 0,
    });
    for (let n = 0; n < 3; n += 1) await claim('live');
    const { live } = await getQueue('live');
    expect(live.running).toBe(3);
    expect(live.tokens.requests).toBeLessThan(0.01);
    expect(live.next_token_in_ms).toBeGreaterThan(300_000_000);
    expect((await getQueue('live')).live.tokens.tokens).toBe(1_000);
    const window = { limit: null, allowed: 100, per_seconds: 31_536_000 };
    expect(live).toMatchObject({
      usage: [
        { ...window, unit: 'requests', used: 3 },
        { ...window, unit: 'tokens', used: 0, next_in_ms: 0 },
      ],
      recovery_factor: 1,
    });
  });

  it('R-CH7: a change keeps what it does not name, and says rates as people do', async () => {
    const change = (body: unknown) =>
      call({ method: 'PATCH', url: '/api/v1/queues/changed', body }).then((answer) =>
        answer.json<Queue>(),
      );
    const made = await change({ limits: { rpm: 500, tpm: 30_000 } });
    const tokens = { unit: 'tokens', rate: 30_000, per_seconds: 60, burst: null };
    expect(made).toMatchObject({
      version: 1,
      limits: [{ unit: 'requests', rate: 500, per_seconds: 60, burst: null }, tokens],
      max_concurrency: null,
    });
    expect(await change({ max_concurrency: 5 })).toMatchObject({
      version: 2,
      limits: made.limits,
      max_concurrency: 5,
    });
    await change({ paused: true });
    expect(await change({ limits: { rpm: null } })).toMatchObject({
      limits: [tokens],
      max_concurrency: 5,
      paused: true,
    });
    expect(await change({ limits: [], max_concurrency: null, paused: false })).toMatchObject({
      version: 5,
      limits: [],
      max_concurrency: null,
      paused: false,
    });
    expect((await putQueue('changed', { limits: { rps: 5 } })).json<Queue>().limits).toEqual([
      { unit: 'requests', rate: 5, per_seconds: 1, burst: null },
    ]);
  });

  it('R-CH7: of changes made at the same time none is lost', async () => {
    const changes = [
      { max_concurrency: 5 },
      { max_ready: 50 },
      { max_active: 500 },
      { max_lanes: 50 },
      { limits: { rpm: 500 } },
      { limits: { tpm: 30_000 } },
      { ageing: { low_to_high_seconds: 60 } },
      { ageing: { medium_to_high_seconds: 30 } },
    ];
    const url = '/api/v1/queues/changed-at-once';
    await Promise.all(changes.map((body) => call({ method: 'PATCH', url, body })));
    const { limits, ...queue } = await getQueue('changed-at-once');
    expect(queue).toMatchObject({
      version: changes.length,
      max_concurrency: 5,
      max_ready: 50,
      max_active: 500,
      max_lanes: 50,
      ageing: { low_to_high_seconds: 60, medium_to_high_seconds: 30 },
    });
    expect(limits).toHaveLength(2);
  });

  it('R-CH5: the smallest bucket of a unit is told, shared ones too, and debts', async () => {
    await call(put('/api/v1/limits/account', { ...slowTokens, burst: 10 }));
    await putQueue('debts', { limits: [slowTokens, { use: 'account' }] });
    expect((await getQueue('debts')).live.tokens).toEqual({ tokens: 10 });
    const { task_id, lease, worker } = await claim('debts');
    const report = { task_id, lease, status: 'completed', usage: { tokens: 25 } };
    await call(post(`/internal/workers/${worker}/result`, report));
    const { live } = await getQueue('debts');
    expect(live.tokens.tokens).toBeCloseTo(-15, 1);
    expect(live).toMatchObject({
      usage: [
        { limit: null, used: 25 },
        { limit: 'account', used: 25 },
      ],
    });
    expect(live.next_token_in_ms).toBeGreaterThan(0);
    const task = (await call({ url: `/api/v1/tasks/${task_id}` })).json();
    expect(task).toMatchObject({ usage: { tokens: 25 } });
  });

  it('R-CH5: what would start after the end of all calendars is accepted, and has no start time', async () => {
    await putQueue('endless', { limits: [slowTokens] });
    const worker = await register({ queues: ['endless'] });
    await submit({ queue: 'endless', cost: { tokens: 1e12 } });
    await call(post(`/internal/workers/${worker}/poll`, { available_capacity: 1 }));
    // Each takes ten years for what it leaves, and ten until the burst is there again.
    const dear = { task_type: 'late', queue: 'endless', cost: { tokens: 1e12 } };
    for (let left = 14_000; left > 0; left -= 1_000) {
      await call(post('/api/v1/tasks/batch', { tasks: Array(1_000).fill(dear) }));
    }
    const accepted = await call(post('/api/v1/tasks', dear));
    expect([accepted.status, accepted.json()]).toMatchObject([
      201,
      { status: 'queued', estimated_start_time: null },
    ]);
    const { task_id } = accepted.json<{ task_id: string }>();
    const explained = await call({ url: `/api/v1/tasks/${task_id}/explain` });
    expect([explained.status, explained.json()]).toMatchObject([
      200,
      { estimated_start_time: null },
    ]);
    const { reasons } = explained.json<{ reasons: { kind: string }[] }>();
    expect(reasons.map(({ kind }) => kind)).toContain('rate_limit');
    const [tenYears, oneToken] = [
      10 * slowTokens.per_seconds,
      slowTokens.per_seconds / slowTokens.rate,
    ];
    const { live } = await getQueue('endless');
    expect(live.next_token_in_ms).toBeLessThanOrEqual((tenYears + oneToken) * 1_000);
  });

  it('a queue without limits has no tokens to tell of', async () => {
    await putQueue('unlimited', {});
    const { live } = await getQueue('unlimited');
    expect(live).toMatchObject({ tokens: {}, next_token_in_ms: null, paused_why: null });
  });

  it('R-CH7: a pause is told with its end and its reason, and is over by itself', async () => {
    const until = '2030-01-31T12:00:00.000Z';
    await call(post('/api/v1/queues/pausing/pause', { until }));
    expect(await getQueue('pausing')).toMatchObject({
      paused: true,
      paused_until: until,
      live: { paused_until: until, paused_why: 'paused by an operator' },
    });
    await call(post('/api/v1/queues/pausing/pause', { until: '2020-01-31T12:00:00.000Z' }));
    expect(await getQueue('pausing')).toMatchObject({
      paused: false,
      paused_until: null,
      live: { paused_until: null, paused_why: null },
    });
  });

  it('R-CH7: a PUT can keep a pause and its end', async () => {
    const paused_until = '2030-01-31T12:00:00.000Z';
    await putQueue('kept', { paused: true, paused_until });
    expect(await getQueue('kept')).toMatchObject({ paused: true, paused_until });
    await putQueue('kept', { paused: true });
    expect(await getQueue('kept')).toMatchObject({ paused: true, paused_until: null });
    const refused = await putQueue('kept', { paused_until });
    expect(refused.json<Problem>().errors).toEqual([
      { path: '/paused_until', message: 'needs "paused": true' },
    ]);
  });

  it('R-CH4: a shared limit is made, changed, read and deleted, also with "/" in its name', async () => {
    const url = '/api/v1/limits/openai%2Faccount';
    const limit = { unit: 'requests', rate: 500, per_seconds: 60 };
    expect((await call(put(url, limit))).json()).toEqual({
      name: 'openai/account',
      ...limit,
      burst: null,
      in_force: true,
    });
    await putQueue('sharing', { limits: [{ use: 'openai/account' }] });
    expect((await call({ method: 'DELETE', url })).json().code).toBe('limit_in_use');
    await call(put(url, { ...limit, rate: 600, burst: 5 }));
    expect((await call({ url })).json()).toMatchObject({ rate: 600, burst: 5 });
    await putQueue('sharing', {});
    expect((await call({ method: 'DELETE', url })).status).toBe(204);
    expect((await call({ url })).json().code).toBe('limit_not_found');
  });

  it('R-OB5: a receipt estimates the wait from the limits, before anything has run', async () => {
    const limits = [{ unit: 'tokens', rate: 600, per_seconds: 60, burst: 600 }];
    await putQueue('estimated', { limits });
    const waits: unknown[] = [];
    for (let n = 0; n < 3; n += 1) {
      const draft = { task_type: 'chat', queue: 'estimated', cost: { tokens: 600 } };
      const receipt = (await call(post('/api/v1/tasks', draft))).json();
      waits.push(receipt.estimated_wait_seconds);
    }
    expect(waits).toEqual([0, 60, 120]);
    const free = (await call(post('/api/v1/tasks', { task_type: 'x', queue: 'unknown' }))).json();
    expect(free.estimated_wait_seconds).toBeNull();
  });
});

describe('R-AD7, R-CH4: limits and costs that are refused, and leave nothing behind', () => {
  const limit = { unit: 'requests', rate: 500, per_seconds: 60 };
  const json = (rate: string) => `{"unit":"requests","rate":${rate},"per_seconds":60}`;

  const rates: [string, unknown, string][] = [
    ['a rate of 0', { ...limit, rate: 0 }, '/rate'],
    ['a rate of -1', { ...limit, rate: -1 }, '/rate'],
    ['a rate of 1.5', { ...limit, rate: 1.5 }, '/rate'],
    ['a rate as text', { ...limit, rate: '500' }, '/rate'],
    ['a rate beyond the range of numbers', json('1e400'), '/rate'],
    ['a rate beyond all measure', { ...limit, rate: 1e9 + 1 }, '/rate'],
    ['no rate', { unit: 'requests', per_seconds: 60 }, '/rate'],
    ['no window', { ...limit, per_seconds: 0 }, '/per_seconds'],
    ['a window of half a second', { ...limit, per_seconds: 0.5 }, '/per_seconds'],
    ['a window of two years', { ...limit, per_seconds: 63_072_000 }, '/per_seconds'],
    ['a burst of 0', { ...limit, burst: 0 }, '/burst'],
    ['a burst of -1', { ...limit, burst: -1 }, '/burst'],
    ['a rate too fine to be exact', { ...limit, rate: 1e9, per_seconds: 86_400 }, '/rate'],
    ['a burst too fine to be exact', { ...limit, burst: 1e9 }, '/burst'],
    ['an empty unit', { ...limit, unit: '' }, '/unit'],
    ['a unit with a line break', { ...limit, unit: 'a\nb' }, '/unit'],
    ['a unit of 201 characters', { ...limit, unit: 'u'.repeat(201) }, '/unit'],
    ['an unknown field', { ...limit, bursts: 5 }, '/bursts'],
  ];
  const asQueue = (body: unknown) =>
    typeof body === 'string' ? `{"limits":[${body}]}` : { limits: [body] };

  it.each(rates)('%s, of a queue', async (_, body, path) => {
    await expectRefused(put('/api/v1/queues/refusing', asQueue(body)), `/limits/0${path}`);
    expect((await call({ url: '/api/v1/queues/refusing' })).json().code).toBe('queue_not_found');
  });

  it.each(rates)('%s, shared', async (_, body, path) => {
    await expectRefused(put('/api/v1/limits/refusing', body), path);
    expect((await call({ url: '/api/v1/limits/refusing' })).json().code).toBe('limit_not_found');
  });

  it.each<[string, object, string]>([
    ['one unit twice', { limits: [limit, { ...limit, per_seconds: 1 }] }, '/limits/1/unit'],
    ['one shared limit twice', { limits: [{ use: 'a' }, { use: 'a' }] }, '/limits/1/use'],
    ['a unit and a shared limit in one', { limits: [{ ...limit, use: 'a' }] }, '/limits/0/use'],
    ['a limit that nobody made', { limits: [limit, { use: 'nobody' }] }, '/limits/1/use'],
    ['a limit that names nothing', { limits: [{}] }, '/limits/0/unit'],
    ['limits that are no list', { limits: 5 }, '/limits'],
    ['rates by unknown names', { limits: { rmp: 500 } }, '/limits/rmp'],
    ['two rates of one unit', { limits: { rps: 5, rpm: 500 } }, '/limits/rpm'],
    ['a rate of 0 by its name', { limits: { rpm: 0 } }, '/limits/rpm'],
    ['the end of no pause', { paused_until: '2030-01-31T12:00:00Z' }, '/paused_until'],
    ['too many limits', { limits: Array(21).fill({ use: 'a' }) }, '/limits'],
    ['nobody at once', { max_concurrency: 0 }, '/max_concurrency'],
    ['an unknown field', { max_concurency: 5 }, '/max_concurency'],
  ])('%s', async (_, body, path) => {
    await expectRefused(put('/api/v1/queues/refusing', body), path);
    expect((await call({ url: '/api/v1/queues/refusing' })).json().code).toBe('queue_not_found');
  });

  it('a rate that is no number at all is no JSON', async () => {
    const answer = await call(put('/api/v1/limits/refusing', json('NaN')));
    expect([answer.status, answer.json().code]).toEqual([400, 'invalid_json']);
  });

  it.each([
    ['control characters', 'a%01b'],
    ['a line break', 'a%0Ab'],
    ['a space', 'a%20b'],
    ['what a URL would resolve away', '%2E%2E'],
    ['201 characters', 'n'.repeat(201)],
    ['letters beyond ASCII', 'gr%C3%BCn'],
  ])('a name with %s', async (_, name) => {
    for (const path of [`/api/v1/limits/${name}`, `/api/v1/queues/${name}`]) {
      const answer = await call(put(path, path.includes('limits') ? limit : {}));
      expect([path, answer.status >= 400 && answer.status < 500]).toEqual([path, true]);
    }
  });

  it('no name', async () => {
    const answer = await call(put('/api/v1/limits/', limit));
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(answer.status).toBeLessThan(500);
  });

  it.each<[string, object | string, string]>([
    ['negative', { tokens: -1 }, '/cost/tokens'],
    ['half of one', { tokens: 0.5 }, '/cost/tokens'],
    ['huge', { tokens: 1e13 }, '/cost/tokens'],
    ['of requests', { tokens: 5, requests: 1 }, '/cost/requests'],
    ['no number', { tokens: 'many' }, '/cost/tokens'],
  ])('a cost that is %s', async (_, cost, path) => {
    const draft = { task_type: 'chat', queue: 'costly', cost };
    await expectRefused(post('/api/v1/tasks', draft), path);
    const batch = await call(post('/api/v1/tasks/batch', { tasks: [draft] }));
    const [result] = batch.json<{ results: { error: Problem }[] }>().results;
    expect(result?.error.errors?.map((error) => error.path)).toEqual([`/tasks/0${path}`]);
    const listed = await call({ url: '/api/v1/tasks?queue=costly' });
    expect(listed.json().items).toEqual([]);
  });

  it.each([
    ['negative', -1],
    ['half of one', 0.5],
    ['huge', 1e13],
  ])('R-CH5: a usage that is %s', async (_, tokens) => {
    const worker = await register();
    const held = { task_id: unknownId, lease: staleLease };
    const report = { ...held, status: 'completed', usage: { tokens } };
    await expectRefused(post(`/internal/workers/${worker}/result`, report), '/usage/tokens');
  });

  it('R-CH5: a unit that nothing counts is no mistake, and is explained', async () => {
    const id = await submit({ queue: 'uncounted', cost: { tokenz: 5 } });
    const { notes } = (await call({ url: `/api/v1/tasks/${id}/explain` })).json();
    expect(notes).toEqual(['It costs 5 tokenz, but no limit of queue uncounted counts tokenz.']);
  });

  async function expectRefused(one: Call, path: string): Promise<void> {
    const answer = await call(one);
    const problem = answer.json<Problem>();
    expect([answer.status, problem.code]).toEqual([400, 'invalid_request']);
    expect(problem.errors?.map((error) => error.path)).toContain(path);
    expect(problem.detail).not.toBe('');
  }
});
