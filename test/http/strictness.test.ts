import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, defineTask, Sluice, SluiceError, type TaskId } from '../../src/index.js';
import { silentLog } from '../../src/runtime/log.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { post, unknownId, useHttp, type Call, type Problem } from './support.js';

const http = useHttp();
let remote: Sluice;
let embedded: Sluice;
let database: TestDatabase;
beforeAll(async () => {
  const url = await http().app.listen({ host: '127.0.0.1', port: 0 });
  database = await createTestDatabase();
  embedded = await Sluice.open({ databaseUrl: database.url, log: silentLog });
  remote = connect(url);
});
afterAll(async () => {
  await Promise.all([embedded.close(), remote.close()]);
  await database.drop();
});

const echo = defineTask({ type: 'echo', run: (input) => input });
const put = (url: string, body: unknown): Call => ({ method: 'PUT', url, body });
const patch = (url: string, body: unknown): Call => ({ method: 'PATCH', url, body });
const deep = JSON.parse(`${'{"a":'.repeat(201)}1${'}'.repeat(201)}`) as object;
const gone = new Date(NaN);

/** What JavaScript can give, whatever the types say. */
const odd = (value: unknown): never => value as never;

interface Row {
  readonly name: string;
  readonly typed: (sluice: Sluice) => Promise<unknown>;
  readonly wire: Call;
  /** Where the refusal points to, by TypeScript's names and by those of the wire. */
  readonly at: readonly [typed: string, wire: string];
  readonly meant?: readonly [typed: string, wire: string];
}

function submit(
  name: string,
  options: object,
  wire: object,
  at: Row['at'],
  meant?: Row['meant'],
): Row {
  return {
    name: `submit with ${name}`,
    typed: (sluice) => sluice.submit(echo, {}, odd(options)),
    wire: post('/api/v1/tasks', { task_type: 'echo', ...wire }),
    at,
    ...(meant === undefined ? {} : { meant }),
  };
}

const same = (path: string): Row['at'] => [path, path];
const url = '/api/v1/queues/strict';
const limit = { unit: 'requests', rate: 500, perSeconds: 60 };
const wireLimit = { unit: 'requests', rate: 500, per_seconds: 60 };

const rows: readonly Row[] = [
  submit('prio', { prio: 'high' }, { prio: 'high' }, same('/prio'), same('priority')),
  submit('priority: urgent', { priority: 'urgent' }, { priority: 'urgent' }, same('/priority')),
  submit('capabilities: gpu', { capabilities: 'gpu' }, { required_capabilities: 'gpu' }, [
    '/capabilities',
    '/required_capabilities',
  ]),
  submit(
    'a capability of two words',
    { capabilities: ['a b'] },
    { required_capabilities: ['a b'] },
    ['/capabilities/0', '/required_capabilities/0'],
  ),
  submit('maxRetries: -1', { maxRetries: -1 }, { max_retries: -1 }, [
    '/maxRetries',
    '/max_retries',
  ]),
  submit(
    'the name of the wire',
    { max_retries: 1 },
    { maxRetries: 1 },
    ['/max_retries', '/maxRetries'],
    ['maxRetries', 'max_retries'],
  ),
  submit('an empty queue', { queue: '' }, { queue: '' }, same('/queue')),
  submit('half a second', { timeoutSeconds: 0.5 }, { timeout_seconds: 0.5 }, [
    '/timeoutSeconds',
    '/timeout_seconds',
  ]),
  submit('a number that is none', { maxRetries: NaN }, { max_retries: null }, [
    '/maxRetries',
    '/max_retries',
  ]),
  submit('an empty key', { idempotencyKey: '' }, { idempotency_key: '' }, [
    '/idempotencyKey',
    '/idempotency_key',
  ]),
  submit('a tag that Postgres has not', { tags: ['a\0'] }, { tags: ['a\0'] }, same('/tags/0')),
  submit('tags as text', { tags: 'a' }, { tags: 'a' }, same('/tags')),
  submit('a date that is none', { runAt: gone }, { run_at: 'Invalid Date' }, ['/runAt', '/run_at']),
  submit(
    'two times',
    { runAt: new Date(1e12), delaySeconds: 1 },
    { run_at: '2001-09-09T01:46:40Z', delay_seconds: 1 },
    ['/delaySeconds', '/delay_seconds'],
  ),
  submit('a far time', { delaySeconds: 3e8 }, { delay_seconds: 3e8 }, [
    '/delaySeconds',
    '/delay_seconds',
  ]),
  submit(
    'a cost below nothing',
    { cost: { tokens: -1 } },
    { cost: { tokens: -1 } },
    same('/cost/tokens'),
  ),
  submit(
    'a cost in requests',
    { cost: { requests: 1 } },
    { cost: { requests: 1 } },
    same('/cost/requests'),
  ),
  submit(
    'a deadline of nothing',
    { dispatchDeadlineSeconds: 0 },
    { dispatch_deadline_seconds: 0 },
    ['/dispatchDeadlineSeconds', '/dispatch_deadline_seconds'],
  ),
  submit('an unknown failure', { workflowOnFailure: 'stop' }, { workflow_on_failure: 'stop' }, [
    '/workflowOnFailure',
    '/workflow_on_failure',
  ]),
  {
    name: 'parameters too deep',
    typed: (sluice) => sluice.submit(echo, odd({ deep })),
    wire: post('/api/v1/tasks', { task_type: 'echo', parameters: { deep } }),
    at: same('/parameters'),
  },
  {
    name: 'a draft without its type',
    typed: (sluice) => sluice.api.submit(odd({ queue: 'a' })),
    wire: post('/api/v1/tasks', { queue: 'a' }),
    at: ['/taskType', '/task_type'],
  },
  {
    name: 'set with the name of the wire',
    typed: (sluice) => sluice.queue('strict').set(odd({ max_concurrency: 5 })),
    wire: put(url, { maxConcurrency: 5 }),
    at: ['/max_concurrency', '/maxConcurrency'],
    meant: ['maxConcurrency', 'max_concurrency'],
  },
  {
    name: 'set with nobody at once',
    typed: (sluice) => sluice.queue('strict').set({ maxConcurrency: 0 }),
    wire: put(url, { max_concurrency: 0 }),
    at: ['/maxConcurrency', '/max_concurrency'],
  },
  {
    name: 'set with a number that is none',
    typed: (sluice) => sluice.queue('strict').set({ maxConcurrency: NaN }),
    wire: put(url, { max_concurrency: 'NaN' }),
    at: ['/maxConcurrency', '/max_concurrency'],
  },
  {
    name: 'set with a function',
    typed: (sluice) => sluice.queue('strict').set({ maxConcurrency: odd(() => 5) }),
    wire: put(url, { max_concurrency: '() => 5' }),
    at: ['/maxConcurrency', '/max_concurrency'],
  },
  {
    name: 'set with an age that is none',
    typed: (sluice) => sluice.queue('strict').set({ ageing: { lowToHighMs: NaN } }),
    wire: put(url, { ageing: { low_to_high_seconds: 'NaN' } }),
    at: ['/ageing/lowToHighMs', '/ageing/low_to_high_seconds'],
  },
  {
    name: 'change with a rate that is none',
    typed: (sluice) => sluice.queue('strict').change({ limits: { rpm: NaN } }),
    wire: patch(url, { limits: { rpm: 'NaN' } }),
    at: same('/limits/rpm'),
  },
  {
    name: 'change with an endless rate',
    typed: (sluice) => sluice.queue('strict').change({ maxActive: Infinity }),
    wire: patch(url, { max_active: 'Infinity' }),
    at: ['/maxActive', '/max_active'],
  },
  {
    name: 'set with a rate of 0',
    typed: (sluice) => sluice.queue('strict').set({ limits: [{ ...limit, rate: 0 }] }),
    wire: put(url, { limits: [{ ...wireLimit, rate: 0 }] }),
    at: same('/limits/0/rate'),
  },
  {
    name: 'set with a rate too fine to be exact',
    typed: (sluice) =>
      sluice.queue('strict').set({ limits: [{ ...limit, rate: 1e9, perSeconds: 86_400 }] }),
    wire: put(url, { limits: [{ ...wireLimit, rate: 1e9, per_seconds: 86_400 }] }),
    at: same('/limits/0/rate'),
  },
  {
    name: 'set with a window of nothing',
    typed: (sluice) => sluice.queue('strict').set({ limits: [{ ...limit, perSeconds: 0 }] }),
    wire: put(url, { limits: [{ ...wireLimit, per_seconds: 0 }] }),
    at: ['/limits/0/perSeconds', '/limits/0/per_seconds'],
  },
  {
    name: 'set with rmp',
    typed: (sluice) => sluice.queue('strict').set({ limits: odd({ rmp: 500 }) }),
    wire: put(url, { limits: { rmp: 500 } }),
    at: same('/limits/rmp'),
    meant: same('rpm'),
  },
  {
    name: 'set with rps and rpm',
    typed: (sluice) => sluice.queue('strict').set({ limits: { rps: 5, rpm: 300 } }),
    wire: put(url, { limits: { rps: 5, rpm: 300 } }),
    at: same('/limits/rpm'),
  },
  {
    name: 'set with a limit that nobody made',
    typed: (sluice) => sluice.queue('strict').set({ limits: [{ use: 'nobody' }] }),
    wire: put(url, { limits: [{ use: 'nobody' }] }),
    at: same('/limits/0/use'),
  },
  {
    name: 'set with the end of no pause',
    typed: (sluice) => sluice.queue('strict').set({ pausedUntil: new Date(2e12) }),
    wire: put(url, { paused_until: '2033-05-18T03:33:20Z' }),
    at: ['/pausedUntil', '/paused_until'],
  },
  {
    name: 'set with an ageing of the past',
    typed: (sluice) => sluice.queue('strict').set({ ageing: { lowToHighMs: -1_000 } }),
    wire: put(url, { ageing: { low_to_high_seconds: -1 } }),
    at: ['/ageing/lowToHighMs', '/ageing/low_to_high_seconds'],
  },
  {
    name: 'change with a misspelt name',
    typed: (sluice) => sluice.queue('strict').change(odd({ maxConcurency: 5 })),
    wire: patch(url, { max_concurency: 5 }),
    at: ['/maxConcurency', '/max_concurency'],
    meant: ['maxConcurrency', 'max_concurrency'],
  },
  {
    name: 'change with nothing',
    typed: (sluice) => sluice.queue('strict').change({}),
    wire: patch(url, {}),
    at: same(''),
  },
  {
    name: 'pause until a date that is none',
    typed: (sluice) => sluice.queue('strict').pause(gone),
    wire: post(`${url}/pause`, { until: 'Invalid Date' }),
    at: same('/until'),
  },
  {
    name: 'a queue of two words',
    typed: (sluice) => sluice.queue('a b').get(),
    wire: { url: '/api/v1/queues/a%20b' },
    at: same('/name'),
  },
  {
    name: 'a shared limit per minute',
    typed: (sluice) => sluice.api.putLimit('strict', odd({ ...limit, burts: 5 })),
    wire: put('/api/v1/limits/strict', { ...wireLimit, burts: 5 }),
    at: same('/burts'),
    meant: same('burst'),
  },
  {
    name: 'a task by another id',
    typed: (sluice) => sluice.task('17').status(),
    wire: { url: '/api/v1/tasks/17' },
    at: ['/taskId', '/task_id'],
  },
  {
    name: 'cancel with an unknown filter',
    typed: (sluice) => sluice.api.cancelTasks(odd({ workflow: 'a' })),
    wire: post('/api/v1/tasks/cancel', { workflow: 'a' }),
    at: same('/workflow'),
    meant: ['workflowId', 'workflow_id'],
  },
  {
    name: 'cancel everything',
    typed: (sluice) => sluice.api.cancelTasks({}),
    wire: post('/api/v1/tasks/cancel', {}),
    at: same(''),
  },
  {
    name: 'cancel everything, a few at a time',
    typed: (sluice) => sluice.api.cancelTasks({}, { limit: 5 }),
    wire: post('/api/v1/tasks/cancel', { limit: 5 }),
    at: same(''),
  },
  {
    name: 'cancel with the name of the wire',
    typed: (sluice) => sluice.api.cancelTasks(odd({ task_type: 'a' })),
    wire: post('/api/v1/tasks/cancel', { taskType: 'a' }),
    at: ['/task_type', '/taskType'],
    meant: ['taskType', 'task_type'],
  },
  {
    name: 'count for an unknown action',
    typed: (sluice) => sluice.api.countTasks({}, { action: odd('delete') }),
    wire: { url: '/api/v1/tasks/count?action=delete' },
    at: same('/action'),
  },
  {
    name: 'replay what waits',
    typed: (sluice) => sluice.api.replayTasks({ status: 'queued' }),
    wire: post('/api/v1/tasks/replay', { status: 'queued' }),
    at: same('/status'),
  },
  {
    name: 'replay many with the name of one',
    typed: (sluice) => sluice.api.replayTasks({ queue: 'a' }, odd({ priority: 'high' })),
    wire: post('/api/v1/tasks/replay', { queue: 'a', priority: 'high' }),
    at: same('/priority'),
    meant: ['newPriority', 'new_priority'],
  },
  {
    name: 're-prioritise to nothing',
    typed: (sluice) => sluice.api.reprioritiseTasks({ queue: 'a' }, odd({})),
    wire: post('/api/v1/tasks/reprioritise', { queue: 'a' }),
    at: ['/newPriority', '/new_priority'],
  },
  {
    name: 'a text that is too long',
    typed: (sluice) => sluice.api.listTasks({ text: 'x'.repeat(101) }),
    wire: { url: `/api/v1/tasks?text=${'x'.repeat(101)}` },
    at: same('/text'),
  },
  {
    name: 'list none at a time',
    typed: (sluice) => sluice.api.listTasks({}, { limit: 0 }),
    wire: { url: '/api/v1/tasks?limit=0' },
    at: same('/limit'),
  },
  {
    name: 'list by an unknown state',
    typed: (sluice) => sluice.api.listTasks({ status: odd('ready') }),
    wire: { url: '/api/v1/tasks?status=ready' },
    at: same('/status'),
  },
  {
    name: 'change a task to nothing',
    typed: (sluice) => sluice.api.changeTask(unknownId as TaskId, {}),
    wire: patch(`/api/v1/tasks/${unknownId}`, {}),
    at: same(''),
  },
  {
    name: 'replay with an unknown option',
    typed: (sluice) => sluice.api.replayTask(unknownId as TaskId, odd({ priority: 'high' })),
    wire: post(`/api/v1/tasks/${unknownId}/replay`, { priority: 'high' }),
    at: same('/priority'),
    meant: ['newPriority', 'new_priority'],
  },
  {
    name: 'replay none a second',
    typed: (sluice) => sluice.api.replayDeadLetters({}, { perSecond: 0 }),
    wire: post('/api/v1/dlq/replay', { per_second: 0 }),
    at: ['/perSecond', '/per_second'],
  },
  {
    name: 'a key for nothing',
    typed: (sluice) => sluice.api.createKey({ name: 'strict', scopes: [] }),
    wire: post('/api/v1/keys', { name: 'strict', scopes: [] }),
    at: same('/scopes'),
  },
  {
    name: 'a worker whose capability is two words',
    typed: (sluice) => sluice.worker([echo], { capabilities: ['a b'], log: silentLog }).start(),
    wire: post('/internal/workers/register', { capabilities: ['a b'] }),
    at: same('/capabilities/0'),
  },
];

describe('TypeScript is as strict as HTTP: same code, same path, same suggestion', () => {
  it.each(rows)('$name', async ({ typed, wire, at, meant }) => {
    const answer = await http().call(wire);
    const problem = answer.json<Problem>();
    const here = await refusal(() => typed(embedded));
    const there = await refusal(() => typed(remote));
    expect(there).toEqual(here);
    expect([here.code, problem.code]).toEqual(['invalid_request', 'invalid_request']);
    const [typedError] = here.errors;
    const [wireError] = problem.errors ?? [];
    expect([typedError?.path, wireError?.path]).toEqual(at);
    const suggested = [typedError?.message, wireError?.message].map(suggestionIn);
    expect(suggested).toEqual(meant ?? [undefined, undefined]);
    // The rest of the sentence is the same.
    const rest = (message = '') => message.replace(/"\w+"\?$/, '');
    expect(rest(typedError?.message)).toBe(rest(wireError?.message));
  });

  it('a task that is too large', async () => {
    const large = { text: 'x'.repeat(300_000) };
    const answer = await http().call(
      post('/api/v1/tasks', { task_type: 'echo', parameters: large }),
    );
    const here = await refusal(() => embedded.submit(echo, large));
    expect(await refusal(() => remote.submit(echo, large))).toEqual(here);
    expect([here.code, answer.json<Problem>().code]).toEqual([
      'payload_too_large',
      'payload_too_large',
    ]);
  });

  it('of many, each is refused in its place, and by its own names', async () => {
    const submissions = [
      { input: {} },
      { input: {}, options: odd({ prio: 'high' }) },
      { input: {}, options: { maxRetries: -1 } },
      odd({ input: {}, option: {} }),
      { input: {}, options: { delaySeconds: 3600, tags: ['strict'] } },
    ];
    const pathsBy = async (sluice: Sluice) => {
      const submitted = await sluice.submitMany(echo, submissions);
      return submitted.map((one) => (one.kind === 'refused' ? one.error.errors?.[0]?.path : null));
    };
    const expected = [null, '/prio', '/maxRetries', '/option', null];
    expect(await pathsBy(embedded)).toEqual(expected);
    expect(await pathsBy(remote)).toEqual(expected);
    const drafts = [{ taskType: 'echo' }, odd({ task_type: 'echo' })];
    for (const { api } of [embedded, remote]) {
      const [accepted, refused] = await api.submitMany(drafts);
      expect(accepted?.kind).toBe('accepted');
      expect(refused).toMatchObject({ code: 'invalid_request', errors: [{ path: '/task_type' }] });
    }
  });

  it('what HTTP takes, TypeScript takes: a time as text', async () => {
    const runAt = odd('2001-09-09T01:46:40Z');
    for (const sluice of [embedded, remote]) {
      const handle = await sluice.submit(echo, {}, { runAt });
      expect((await handle.status()).runAt).toEqual(new Date(1e12));
    }
  });
});

describe('options that never become a request', () => {
  const log = silentLog;
  it.each<[string, () => unknown, string, string | undefined]>([
    ['connect', () => connect('http://localhost', odd({ apikey: 'k' })), '/apikey', 'apiKey'],
    [
      'a worker',
      () => embedded.worker([echo], odd({ concurency: 5 })),
      '/concurency',
      'concurrency',
    ],
    ['a worker', () => embedded.worker([echo], { concurrency: 0 }), '/concurrency', undefined],
    [
      'a worker',
      () => embedded.worker([echo], odd({ capabilities: 'gpu', log })),
      '/capabilities',
      undefined,
    ],
    [
      'open',
      () => Sluice.open(odd({ databaseURL: 'postgres://x' })),
      '/databaseURL',
      'databaseUrl',
    ],
    ['open', () => Sluice.open(odd({ role: 'worker' })), '/role', undefined],
    [
      'a definition',
      () => defineTask({ type: 'a', retries: 3 } as never),
      '/retries',
      'maxRetries',
    ],
    ['a definition', () => defineTask({ type: 'a' } as never), '/run', undefined],
    ['a definition', () => defineTask({ run: () => 1 } as never), '/type', undefined],
    [
      'a policy',
      () => defineTask({ type: 'a', retry: odd({ delays: [1] }), run: () => 1 }),
      '/retry/delays',
      'delaySeconds',
    ],
  ])('%s: %#', async (_name, call, path, meant) => {
    const { code, errors } = await refusal(async () => call());
    expect([code, errors[0]?.path, suggestionIn(errors[0]?.message)]).toEqual([
      'invalid_request',
      path,
      meant,
    ]);
  });

  it.each([
    { queue: '' },
    { priority: 'urgent' },
    { capabilities: 'gpu' },
    { capabilities: ['a b'] },
    { timeoutSeconds: 0 },
    { timeoutSeconds: '5' },
    { maxRetries: -1 },
    { maxRetries: 101 },
    { cost: 5 },
    { type: 'two words' },
  ])('a definition with %j is refused as its registration is', async (defaults) => {
    const { errors } = await refusal(async () =>
      defineTask({ type: 'strict', ...defaults, run: () => 1 } as never),
    );
    const {
      type = 'strict',
      capabilities,
      timeoutSeconds,
      maxRetries,
      ...rest
    } = defaults as {
      readonly [name: string]: unknown;
    };
    const definition = {
      ...{ task_type: type, ...rest, required_capabilities: capabilities },
      ...{ timeout_seconds: timeoutSeconds, max_retries: maxRetries },
    };
    const answer = await http().call(
      post('/internal/workers/register', { definitions: [definition] }),
    );
    const [wireError] = answer.json<Problem>().errors ?? [];
    const names: Readonly<Record<string, string>> = {
      task_type: 'type',
      required_capabilities: 'capabilities',
      timeout_seconds: 'timeoutSeconds',
      max_retries: 'maxRetries',
    };
    const path = wireError?.path
      .replace('/definitions/0', '')
      .replace(/\w+_\w+/, (name) => names[name] ?? name);
    expect(errors).toEqual([{ path, message: wireError?.message }]);
  });
});

async function refusal(
  call: () => Promise<unknown>,
): Promise<
  Pick<SluiceError, 'code' | 'message'> & { errors: readonly { path: string; message: string }[] }
> {
  try {
    await call();
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    return { code: error.code, message: error.message, errors: error.errors ?? [] };
  }
  throw new Error('It was not refused');
}

function suggestionIn(message = ''): string | undefined {
  return /did you mean "(.+)"\?$/.exec(message)?.[1];
}
