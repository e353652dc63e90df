import { Compile } from 'typebox/compile';
import { beforeAll, describe, expect, it } from 'vitest';
import { errorStatuses, type ErrorCode } from '../../src/domain/errors.js';
import { documentedRoutes, type OpenApi } from './openapi.js';
import { post, staleLease, unknownId, useHttp, type Call, type Problem } from './support.js';
import { usingTasks } from './using-tasks.js';

interface RefusalCase extends Call {
  readonly name: string;
  readonly code: ErrorCode;
  /** Of the field that is at fault. */
  readonly path?: string;
}

const http = useHttp();
const call = (one: Call) => http().call(one);
const { submit, claim, makeDeadLetter } = usingTasks(call);

describe('AD7: refusals', () => {
  const task = `/api/v1/tasks/${unknownId}`;
  const worker = `/internal/workers/${unknownId}`;
  const held = { task_id: unknownId, lease: staleLease };
  const tasks = '/api/v1/tasks';
  const draft = (fields: object) => post(tasks, { task_type: 'chat', ...fields });

  const refusals: RefusalCase[] = [
    { name: 'no task type', ...post(tasks, {}), code: 'invalid_request', path: '/task_type' },
    { name: 'no body', ...post(tasks), code: 'invalid_request', path: '' },
    { name: 'an empty body', ...post(tasks, ''), code: 'invalid_request', path: '' },
    { name: 'null', ...post(tasks, 'null'), code: 'invalid_request', path: '' },
    { name: 'an array', ...post(tasks, []), code: 'invalid_request', path: '' },
    { name: 'broken JSON', ...post(tasks, '{"task_type"'), code: 'invalid_json' },
    {
      name: '__proto__',
      ...post(tasks, '{"task_type":"x","parameters":{"__proto__":{}}}'),
      code: 'invalid_json',
    },
    {
      name: 'bytes that are not UTF-8',
      ...post(tasks, Buffer.from([0x22, 0xff, 0x22])),
      code: 'invalid_json',
    },
    {
      name: 'plain text',
      ...post(tasks, '{}', { 'content-type': 'text/plain' }),
      code: 'unsupported_media_type',
    },
    {
      name: 'a form',
      ...post(tasks, 'a=b', { 'content-type': 'application/x-www-form-urlencoded' }),
      code: 'unsupported_media_type',
    },
    {
      name: 'lines where one task is due',
      ...post(tasks, '{}', { 'content-type': 'application/x-ndjson' }),
      code: 'unsupported_media_type',
    },
    {
      name: 'a compressed body',
      ...post(tasks, '{}', { 'content-encoding': 'gzip' }),
      code: 'unsupported_media_type',
    },
    {
      name: 'an unknown field',
      ...draft({ taskType: 'x' }),
      code: 'invalid_request',
      path: '/taskType',
    },
    {
      name: 'a task type with spaces',
      ...post(tasks, { task_type: 'a b' }),
      code: 'invalid_request',
      path: '/task_type',
    },
    {
      name: 'a queue that a URL would resolve away',
      ...draft({ queue: '..' }),
      code: 'invalid_request',
      path: '/queue',
    },
    {
      name: 'a name that is too long',
      ...draft({ queue: 'q'.repeat(201) }),
      code: 'invalid_request',
      path: '/queue',
    },
    {
      name: 'an unknown priority',
      ...draft({ priority: 'urgent' }),
      code: 'invalid_request',
      path: '/priority',
    },
    {
      name: 'parameters that are a list',
      ...draft({ parameters: [] }),
      code: 'invalid_request',
      path: '/parameters',
    },
    {
      name: 'parameters that are null',
      ...draft({ parameters: null }),
      code: 'invalid_request',
      path: '/parameters',
    },
    {
      name: 'a time-out of 0',
      ...draft({ timeout_seconds: 0 }),
      code: 'invalid_request',
      path: '/timeout_seconds',
    },
    {
      name: 'a time-out beyond a day',
      ...draft({ timeout_seconds: 86_401 }),
      code: 'invalid_request',
      path: '/timeout_seconds',
    },
    {
      name: 'half a retry',
      ...draft({ max_retries: 1.5 }),
      code: 'invalid_request',
      path: '/max_retries',
    },
    {
      name: 'a number as text',
      ...draft({ max_retries: '3' }),
      code: 'invalid_request',
      path: '/max_retries',
    },
    {
      name: 'a delay below 0',
      ...draft({ delay_seconds: -1 }),
      code: 'invalid_request',
      path: '/delay_seconds',
    },
    {
      name: 'R-HA6: a time beyond maxScheduleDays',
      ...draft({ run_at: new Date(Date.now() + 367 * 86_400_000).toISOString() }),
      code: 'invalid_request',
      path: '/run_at',
    },
    {
      name: 'R-HA6: a delay beyond maxScheduleDays',
      ...draft({ delay_seconds: 367 * 86_400 }),
      code: 'invalid_request',
      path: '/delay_seconds',
    },
    {
      name: 'both run_at and delay_seconds',
      ...draft({ run_at: '2030-01-01T00:00:00Z', delay_seconds: 1 }),
      code: 'invalid_request',
      path: '/delay_seconds',
    },
    {
      name: 'a day that does not exist',
      ...draft({ run_at: '2030-02-30T00:00:00Z' }),
      code: 'invalid_request',
      path: '/run_at',
    },
    {
      name: 'a leap second',
      ...draft({ run_at: '2016-12-31T23:59:60Z' }),
      code: 'invalid_request',
      path: '/run_at',
    },
    {
      name: 'a time without its zone',
      ...draft({ run_at: '2030-01-01T00:00:00' }),
      code: 'invalid_request',
      path: '/run_at',
    },
    {
      name: 'half a token',
      ...draft({ cost: { tokens: 0.5 } }),
      code: 'invalid_request',
      path: '/cost/tokens',
    },
    {
      name: 'a cost beyond all measure',
      ...draft({ cost: { tokens: 1e13 } }),
      code: 'invalid_request',
      path: '/cost/tokens',
    },
    {
      name: 'a unit with spaces',
      ...draft({ cost: { 'my tokens': 1 } }),
      code: 'invalid_request',
      path: '/cost/my tokens',
    },
    {
      name: 'NUL in a text',
      ...draft({ user_id: 'a\0' }),
      code: 'invalid_request',
      path: '/user_id',
    },
    {
      name: 'half of a surrogate pair in a tag',
      ...draft({ tags: ['ok', '\udc00'] }),
      code: 'invalid_request',
      path: '/tags/1',
    },
    {
      name: 'a tab in a capability',
      ...draft({ required_capabilities: ['a\tb'] }),
      code: 'invalid_request',
      path: '/required_capabilities/0',
    },
    {
      name: 'too many capabilities',
      ...draft({ required_capabilities: Array(21).fill('a') }),
      code: 'invalid_request',
      path: '/required_capabilities',
    },
    {
      name: 'an empty idempotency key',
      ...draft({ idempotency_key: '' }),
      code: 'invalid_request',
      path: '/idempotency_key',
    },
    {
      name: 'two idempotency keys',
      ...post(tasks, { task_type: 'x', idempotency_key: 'a' }, { 'idempotency-key': 'b' }),
      code: 'invalid_request',
      path: '/idempotency_key',
    },
    {
      name: 'parameters nested too deep',
      ...post(
        tasks,
        `{"task_type":"x","parameters":{"a":${'['.repeat(5_000)}${']'.repeat(5_000)}}}`,
      ),
      code: 'invalid_request',
      path: '/parameters',
    },
    {
      name: 'a number beyond the range of numbers',
      ...post(tasks, '{"task_type":"x","parameters":{"a":1e999}}'),
      code: 'invalid_request',
      path: '/parameters',
    },
    {
      name: 'a task that is too large',
      ...draft({ parameters: { text: 'x'.repeat(256 * 1024) } }),
      code: 'payload_too_large',
    },
    {
      name: 'R-HA4: a worker whose names are too long together',
      ...post('/internal/workers/register', {
        task_types: Array.from({ length: 500 }, (_, n) => `${'x'.repeat(150)}${String(n)}`),
      }),
      code: 'invalid_request',
      path: '/task_types',
    },
    {
      name: 'a batch of none',
      ...post(`${tasks}/batch`, { tasks: [] }),
      code: 'invalid_request',
      path: '/tasks',
    },
    {
      name: 'a batch of too many',
      ...post(`${tasks}/batch`, { tasks: Array(5_001).fill({ task_type: 'x' }) }),
      code: 'invalid_request',
      path: '/tasks',
    },
    {
      name: 'one key for a batch',
      ...post(`${tasks}/batch`, { tasks: [{ task_type: 'x' }] }, { 'idempotency-key': 'a' }),
      code: 'invalid_request',
      path: '/Idempotency-Key',
    },
    {
      name: 'a batch that is too large',
      ...post(`${tasks}/batch`, Buffer.alloc(16 * 1024 * 1024 + 1, ' ')),
      code: 'payload_too_large',
    },
    { name: 'a malformed task id', url: `${tasks}/17`, code: 'invalid_request', path: '/task_id' },
    { name: 'broken percent-encoding', url: `${tasks}/%zz`, code: 'invalid_request' },
    { name: 'an endless path', url: `${tasks}/${'a'.repeat(4_000)}`, code: 'invalid_request' },
    { name: 'an unknown task', url: task, code: 'task_not_found' },
    { name: 'an unknown task to wait for', url: `${task}/wait`, code: 'task_not_found' },
    { name: 'an unknown task to explain', url: `${task}/explain`, code: 'task_not_found' },
    { name: 'an unknown task to cancel', method: 'DELETE', url: task, code: 'task_not_found' },
    {
      name: 'an unknown task to change',
      method: 'PATCH',
      url: task,
      body: { priority: 'low' },
      code: 'task_not_found',
    },
    { name: 'an unknown task to replay', ...post(`${task}/replay`, {}), code: 'task_not_found' },
    {
      name: 'an unknown dead letter',
      ...post(`/api/v1/dlq/${unknownId}/replay`),
      code: 'task_not_found',
    },
    {
      name: 'a change of nothing',
      method: 'PATCH',
      url: task,
      body: {},
      code: 'invalid_request',
      path: '',
    },
    {
      name: 'a cancel without a filter',
      ...post(`${tasks}/cancel`, {}),
      code: 'invalid_request',
      path: '',
    },
    {
      name: 'a wait beyond a minute',
      url: `${task}/wait?timeout_seconds=61`,
      code: 'invalid_request',
      path: '/timeout_seconds',
    },
    {
      name: 'an unknown include',
      url: `${task}?include=everything`,
      code: 'invalid_request',
      path: '/include',
    },
    {
      name: 'an unknown query parameter',
      url: `${tasks}?colour=red`,
      code: 'invalid_request',
      path: '/colour',
    },
    {
      name: 'a query parameter twice',
      url: `${tasks}?queue=a&queue=b`,
      code: 'invalid_request',
      path: '/queue',
    },
    {
      name: 'a limit that is no number',
      url: `${tasks}?limit=ten`,
      code: 'invalid_request',
      path: '/limit',
    },
    { name: 'a limit of 0', url: `${tasks}?limit=0`, code: 'invalid_request', path: '/limit' },
    { name: 'a cursor of nobody', url: `${tasks}?cursor=AAAA`, code: 'invalid_request' },
    {
      name: 'a cursor with NUL',
      url: `${tasks}?cursor=%00`,
      code: 'invalid_request',
      path: '/cursor',
    },
    { name: 'an unknown queue', url: '/api/v1/queues/nobody-made-this', code: 'queue_not_found' },
    {
      name: 'a malformed queue name',
      url: '/api/v1/queues/a%20b',
      code: 'invalid_request',
      path: '/name',
    },
    {
      name: 'a misspelt limit',
      method: 'PUT',
      url: '/api/v1/queues/q',
      body: { limits: [{ use: 'a', unit: 'b' }] },
      code: 'invalid_request',
      path: '/limits/0/unit',
    },
    {
      name: 'a limit of half a request',
      method: 'PUT',
      url: '/api/v1/queues/q',
      body: { limits: [{ unit: 'requests', rate: 0.5, per_seconds: 1 }] },
      code: 'invalid_request',
      path: '/limits/0/rate',
    },
    {
      name: 'a limit that nobody made',
      method: 'PUT',
      url: '/api/v1/queues/q',
      body: { limits: [{ use: 'nobody-made-this' }] },
      code: 'invalid_request',
    },
    { name: 'an unknown limit', url: '/api/v1/limits/nobody-made-this', code: 'limit_not_found' },
    {
      name: 'an unknown limit to delete',
      method: 'DELETE',
      url: '/api/v1/limits/nobody-made-this',
      code: 'limit_not_found',
    },
    { name: 'an unknown worker', url: `/api/v1/workers/${unknownId}`, code: 'worker_not_found' },
    {
      name: 'an unknown worker to drain',
      ...post(`/api/v1/workers/${unknownId}/drain`),
      code: 'worker_not_found',
    },
    {
      name: 'a malformed worker id',
      ...post('/internal/workers/me/poll', { available_capacity: 1 }),
      code: 'invalid_request',
      path: '/worker_id',
    },
    {
      name: 'a poll of an unknown worker',
      ...post(`${worker}/poll`, { available_capacity: 1 }),
      code: 'worker_unknown',
    },
    {
      name: 'a heartbeat of an unknown worker',
      ...post(`${worker}/heartbeat`, { current_load: 0, status: 'active' }),
      code: 'worker_unknown',
    },
    {
      name: 'a poll beyond a minute',
      ...post(`${worker}/poll`, { available_capacity: 1, wait_seconds: 61 }),
      code: 'invalid_request',
      path: '/wait_seconds',
    },
    { name: 'a start with a stale lease', ...post(`${worker}/start`, held), code: 'lease_lost' },
    {
      name: 'progress with a stale lease',
      ...post(`${worker}/progress`, { ...held, progress_percent: 1 }),
      code: 'lease_lost',
    },
    {
      name: 'progress beyond 100',
      ...post(`${worker}/progress`, { ...held, progress_percent: 101 }),
      code: 'invalid_request',
      path: '/progress_percent',
    },
    {
      name: 'a failure without its error',
      ...post(`${worker}/result`, { ...held, status: 'failed' }),
      code: 'invalid_request',
      path: '/error',
    },
    {
      name: 'a success with an error',
      ...post(`${worker}/result`, {
        results: [{ ...held, status: 'completed', error: { code: 'A', message: 'b' } }],
      }),
      code: 'invalid_request',
      path: '/results/0/error',
    },
    {
      name: 'a malformed lease among many',
      ...post(`${worker}/result`, {
        results: [
          { ...held, status: 'completed' },
          { ...held, lease: 'x', status: 'completed' },
        ],
      }),
      code: 'invalid_request',
      path: '/results/1/lease',
    },
    { name: 'a route that is not there', url: '/api/v2/tasks', code: 'route_not_found' },
    {
      name: 'a route that is not there, with a body',
      ...post('/nowhere', '<a/>', { 'content-type': 'text/xml' }),
      code: 'route_not_found',
    },
  ];

  it.each(refusals)('$name → $code', async ({ code, path, ...one }) => {
    const answer = await call(one);
    const problem = answer.json<Problem>();
    expect(problem.code).toBe(code);
    expect(answer.status).toBe(errorStatuses[code]);
    expect(answer.headers['content-type']).toBe('application/problem+json; charset=utf-8');
    if (path !== undefined) expect(problem.errors?.map((error) => error.path)).toContain(path);
  });

  let routes: Awaited<ReturnType<typeof documentedRoutes>>;
  beforeAll(async () => {
    routes = await documentedRoutes(call);
  });

  it('every path refuses a method that it does not have with 405, and says which it has', async () => {
    for (const path of new Set(routes.map(({ url }) => url))) {
      const has = (method: string) =>
        routes.some((route) => route.url === path && route.method === method);
      const method = ['PUT', 'PATCH', 'DELETE'].find((one) => !has(one)) ?? 'TRACE';
      const refused = await call({
        method,
        url: path,
        body: '<a/>',
        headers: { 'content-type': 'text/xml' },
      });
      expect([path, refused.status, refused.json().code]).toEqual([
        path,
        405,
        'method_not_allowed',
      ]);
      const known = String(refused.headers.allow).split(', ');
      for (const route of routes) if (route.url === path) expect(known).toContain(route.method);
      const options = await call({ method: 'OPTIONS', url: path });
      expect([options.status, options.headers.allow]).toEqual([204, refused.headers.allow]);
    }
  });

  it('every route with a body refuses other content types, unknown fields and sizes', async () => {
    for (const { method, url, operation } of routes) {
      if (operation.requestBody === undefined) continue;
      const text = await call({
        method,
        url,
        body: '{}',
        headers: { 'content-type': 'text/plain' },
      });
      expect([url, text.status]).toEqual([url, 415]);
      const unknown = await call({ method, url, body: { colour: 'red' } });
      const problem = unknown.json<Problem>();
      expect([url, unknown.status]).toEqual([url, 400]);
      expect(problem.errors?.map(({ path }) => path)).toContain('/colour');
      const large = await call({ method, url, body: Buffer.alloc(16 * 1024 * 1024 + 1, ' ') });
      expect([url, large.status, large.json().code]).toEqual([url, 413, 'payload_too_large']);
    }
  });

  it('every id in a path is refused when malformed', async () => {
    for (const { method, path } of routes) {
      if (!/\{(task|worker)_id\}/.test(path)) continue;
      const answer = await call({ method, url: path.replace(/\{\w+\}/, 'not-an-id'), body: {} });
      expect([path, answer.status, answer.json().code]).toEqual([path, 400, 'invalid_request']);
    }
  });

  it('every answer is as the OpenAPI document says', async () => {
    const document = (await call({ url: '/openapi.json' })).json<OpenApi>();
    expect(document.openapi).toBe('3.1.0');
    const id = await submit({ queue: 'documented' });
    const { worker: worker_id } = await claim('documented-too');
    await makeDeadLetter('documented-dead');
    for (const { method, path, operation } of routes) {
      if (method !== 'GET' || path === '/api/v1/events') continue;
      const url = path
        .replace('{task_id}', id)
        .replace('{worker_id}', worker_id)
        .replace('/queues/{name}', '/queues/documented')
        .replace('/wait', '/wait?timeout_seconds=0');
      const answer = await call({ url });
      const schema = operation.responses[answer.status]?.content?.['application/json']?.schema;
      if (schema === undefined) continue;
      const check = Compile({ ...schema, components: document.components });
      expect([url, check.Errors(answer.json())]).toEqual([url, []]);
    }
  });
});
