import { describe, expect, it } from 'vitest';
import { staysWithin } from '../support/stays-within.js';
import { post, useHttp, type Answer, type Call, type Problem } from './support.js';
import { usingTasks } from './using-tasks.js';

const http = useHttp();
const call = (one: Call) => http().call(one);
const { submit, register, claim } = usingTasks(call);
const tasks = '/api/v1/tasks';

async function read(task_id: string): Promise<Record<string, unknown>> {
  return (await call({ url: `${tasks}/${task_id}?include=history` })).json();
}

async function submitText(json: string): Promise<Answer> {
  return call(post(tasks, json));
}

async function parametersOf(json: string): Promise<unknown> {
  const answer = await submitText(`{"task_type":"chat","parameters":${json}}`);
  expect([json.slice(0, 80), answer.status]).toEqual([json.slice(0, 80), 201]);
  return (await read(answer.json<{ task_id: string }>().task_id)).parameters;
}

/** Quotes, comments, placeholders, escapes, arrays, JSON and Lua, as text. */
const metacharacters = [
  `'; drop table sluice.tasks; --`,
  `" or ""="`,
  `\\'; select pg_sleep(10); /*`,
  '$1 $2::text $$ $tag$ :name ?',
  '{"a","b"} {a,NULL} \\x00 \\\\ \\"',
  '%s %I %% \n\r\t',
  `]] redis.call('flushall') --`,
  '${1+1} {{1+1}} <%= 1 %>',
  'ユニコード 🏳️‍🌈 e\u0301 \u202e',
].join(' ');
/** The same, of printable ASCII without spaces. */
const label = `'";--$1{,}\\x00%I$$/*`;
const tag = metacharacters.slice(0, 150);
const unit = 'a.b_c:d/e-f';

describe('R-AD7: no value is ever SQL', () => {
  it('metacharacters come back from every field of a task as they were sent', async () => {
    const draft = {
      task_type: unit,
      queue: 'metacharacters',
      parameters: { [metacharacters]: [metacharacters, { [label]: metacharacters }] },
      required_capabilities: [label],
      idempotency_key: metacharacters,
      workflow_id: metacharacters,
      cost: { [unit]: 1 },
      user_id: metacharacters,
      tags: [tag, label, 'NULL', ''.padEnd(200, '"\\')],
      trace_id: metacharacters,
    };
    const task_id = await submit(draft);
    expect(await read(task_id)).toMatchObject(draft);
    const filters = { user_id: metacharacters, workflow_id: metacharacters, tag };
    for (const filter of Object.entries(filters)) {
      const url = `${tasks}?${new URLSearchParams([filter]).toString()}`;
      const { items } = (await call({ url })).json<{ items: { task_id: string }[] }>();
      expect([filter[0], items.map((item) => item.task_id)]).toEqual([filter[0], [task_id]]);
    }
    const again = await call(post(tasks, draft));
    expect([again.status, again.json().task_id]).toEqual([200, task_id]);
    const cancelled = await call(post(`${tasks}/cancel`, { user_id: metacharacters }));
    expect(cancelled.json()).toEqual({ cancelled: 1, next_cursor: null });
  });

  it('and from every field of a worker and of what it reports', async () => {
    const said = { name: metacharacters, host: metacharacters, version: metacharacters };
    const worker_id = await register({ ...said, capabilities: [label] });
    const worker = (await call({ url: `/api/v1/workers/${worker_id}` })).json();
    expect(worker).toMatchObject({ ...said, capabilities: [label] });

    const { worker: holder, ...held } = await claim('reported');
    const at = `/internal/workers/${holder}`;
    const beat = {
      current_load: 1,
      status: 'active',
      health: { [metacharacters]: metacharacters },
    };
    expect((await call(post(`${at}/heartbeat`, beat))).status).toBe(200);
    const progress = { ...held, progress_percent: 1, status_message: metacharacters };
    expect((await call(post(`${at}/progress`, progress))).status).toBe(200);
    const error = {
      code: metacharacters.slice(0, 200),
      message: metacharacters,
      retriable: false,
      details: { [metacharacters]: [metacharacters] },
    };
    await call(post(`${at}/result`, { ...held, status: 'failed', error }));
    const dead = await read(held.task_id);
    expect(dead).toMatchObject({ error, progress: { percent: 1, message: metacharacters } });
    const search = new URLSearchParams({ code: error.code }).toString();
    const { items } = (await call({ url: `/api/v1/dlq?${search}` })).json<{ items: object[] }>();
    expect(items).toMatchObject([{ task_id: held.task_id }]);

    const { worker: other, ...done } = await claim('completed-with-all');
    const result = { [metacharacters]: [metacharacters, null] };
    await call(post(`/internal/workers/${other}/result`, { ...done, status: 'completed', result }));
    expect(await read(done.task_id)).toMatchObject({ status: 'completed', result });
  });
});

describe('R-AD7: JSON that is odd, and right', () => {
  it.each([
    ['keys that JavaScript knows', '{"constructor":{"prototype":{"polluted":1}},"toString":2}'],
    ['NUL', '{"a\\u0000":"\\u0000"}'],
    ['halves of surrogate pairs', '{"\\ud800":"\\udc00\\ud800"}'],
    ['an empty key', '{"":{"":[]}}'],
    ['many keys', `{${Array.from({ length: 10_000 }, (_, n) => `"k${n}":${n}`).join(',')}}`],
    ['a long list', `{"a":[${'0,'.repeat(100_000)}0]}`],
    ['a long text', `{"a":"${'ü'.repeat(100_000)}"}`],
    ['as deep as it may be', `{"a":${'['.repeat(197)}${']'.repeat(197)}}`],
  ])('%s come back as they were', async (_name, json) => {
    expect(await parametersOf(json)).toEqual(JSON.parse(json));
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });

  it('numbers are what JavaScript reads of them', async () => {
    const json = '{"a":[-0,1e-400,9007199254740993,0.1,1e21,123456789012345678901234567890]}';
    const numbers = [0, 0, 9007199254740992, 0.1, 1e21, 1.2345678901234568e29];
    expect(await parametersOf(json)).toEqual({ a: numbers });
  });

  it('a byte-order mark is skipped', async () => {
    expect((await submitText('\ufeff{"task_type":"a"}')).status).toBe(201);
  });

  it('of a key that comes twice the last counts, everywhere', async () => {
    expect(await parametersOf('{"a":1,"b":{"c":1,"c":2},"a":3}')).toEqual({ a: 3, b: { c: 2 } });
    const twice = await submitText('{"task_type":"a","task_type":"b","queue":"x","queue":"y"}');
    expect(await read(twice.json<{ task_id: string }>().task_id)).toMatchObject({
      task_type: 'b',
      queue: 'y',
    });
  });
});

describe('R-AD7: what can not be kept is refused', () => {
  const deep = 1_000_000;
  it.each([
    ['only white space', ' \n ', 'invalid_json'],
    ['__proto__, escaped', '{"task_type":"a","parameters":{"\\u005f_proto__":1}}', 'invalid_json'],
    ['a million levels', '['.repeat(deep), 'payload_too_large'],
    ['numbers beyond all', '{"task_type":"a","parameters":{"a":[1e400]}}', 'invalid_request'],
    [
      'a year of five digits',
      `{"task_type":"a","run_at":"9999-12-31T23:59:59-23:59"}`,
      'invalid_request',
    ],
    ['a delay of ages', '{"task_type":"a","delay_seconds":1e300}', 'invalid_request'],
    [
      'a time-out beyond 32 bits',
      '{"task_type":"a","timeout_seconds":4294967297}',
      'invalid_request',
    ],
  ])('%s', async (_name, json, code) => {
    expect((await submitText(json)).json<Problem>().code).toBe(code);
  });

  it.each([
    ['task_type', 'a\0'],
    ['queue', '\ud800'],
    ['idempotency_key', 'a\0'],
    ['workflow_id', 'a\0'],
    ['user_id', '\udc00'],
    ['trace_id', 'a\0'],
  ])('NUL and half of a pair in %s', async (field, value) => {
    const answer = await call(post(tasks, { task_type: 'chat', [field]: value }));
    expect(answer.json<Problem>().errors?.map(({ path }) => path)).toEqual([`/${field}`]);
  });

  it('a million levels, where a body may be that long', async () => {
    const nested = `{"tasks":[{"task_type":"a","parameters":{"a":${'['.repeat(deep)}${']'.repeat(deep)}}}]}`;
    const answer = await call(post(`${tasks}/batch`, nested));
    const [{ error } = { error: undefined }] = answer.json<{ results: { error: Problem }[] }>()
      .results;
    expect(error).toMatchObject({
      code: 'invalid_request',
      detail: expect.stringContaining('deeper') as string,
    });
  });

  it('R-HA3: a field with an endless name, soon and without its name', async () => {
    const named = JSON.stringify({ task_type: 'chat', ['x'.repeat(200_000)]: 1 });
    const isQuick = await staysWithin(500, async () => {
      const beganMs = performance.now();
      const answer = await call(post(`${tasks}/batch`, `{"tasks":[${named},${named},${named}]}`));
      const { results } = answer.json<{ results: { error: Problem }[] }>();
      expect(results.map(({ error }) => error.code)).toEqual(Array(3).fill('invalid_request'));
      expect(JSON.stringify(results).length).toBeLessThan(10_000);
      return performance.now() - beganMs;
    });
    expect(isQuick).toBe(true);
  });

  it('R-HA3: very many fields that are nearly right, before others have to wait', async () => {
    const names = Array.from({ length: 60 }, (_, index) =>
      `${index}workflowonfailure`.slice(0, 12),
    );
    const task = { task_type: 'chat', ...Object.fromEntries(names.map((name) => [name, 1])) };
    const batch = { tasks: Array.from({ length: 1_000 }, () => task) };
    const isQuick = await staysWithin(2_000, async () => {
      const beganMs = performance.now();
      const answer = await call(post(`${tasks}/batch`, batch));
      expect(answer.json<{ results: unknown[] }>().results).toHaveLength(1_000);
      return performance.now() - beganMs;
    });
    expect(isQuick).toBe(true);
  });

  it('lines that are broken, each for itself', async () => {
    const lines = [
      '{"task_type":"chat"}',
      '{"task_type"',
      '',
      '7',
      '{"__proto__":1}',
      '{"task_type":"chat"}',
    ];
    const headers = { 'content-type': 'application/x-ndjson' };
    const answer = await call(post(`${tasks}/batch`, lines.join('\r\n'), headers));
    const results = answer.json<{ results: { error?: Problem }[] }>().results;
    expect(results.map(({ error }) => error?.code ?? 'taken')).toEqual([
      'taken',
      'invalid_json',
      'invalid_request',
      'invalid_json',
      'taken',
    ]);
  });

  it('cursors that somebody made up', async () => {
    const texts = [
      '',
      'a',
      '\0',
      'ffffffff-ffff-ffff-ffff-ffffffffffff ',
      '0197f0c4 99999999999999',
    ];
    for (const list of [tasks, '/api/v1/workers', '/api/v1/queues', '/api/v1/dlq']) {
      for (const text of texts) {
        const cursor = Buffer.from(text).toString('base64url');
        const { status } = await call({ url: `${list}?cursor=${cursor}` });
        expect([list, text, status < 500]).toEqual([list, text, true]);
      }
    }
    for (const text of texts) {
      const cursor = Buffer.from(text).toString('base64url');
      const { status } = await call(post('/api/v1/dlq/replay', { cursor }));
      expect([text, status]).toEqual([text, 400]);
    }
  });
});

it('R-AD7: numbers that are too small for the column they are kept in are zero', async () => {
  const { worker, ...held } = await claim('tiny');
  const at = `/internal/workers/${worker}`;
  const progress = await call(post(`${at}/progress`, { ...held, progress_percent: 1e-200 }));
  expect(progress.status).toBe(200);
  expect(await read(held.task_id)).toMatchObject({ progress: { percent: 0 } });
  const beat = {
    current_load: 1,
    status: 'active',
    memory_usage: 5e-324,
    event_loop_delay_ms: 5e-324,
  };
  expect((await call(post(`${at}/heartbeat`, beat))).status).toBe(200);
  const report = { ...held, status: 'completed', execution_duration_seconds: 1e-200 };
  expect((await call(post(`${at}/result`, report))).json()).toMatchObject({ accepted: true });
});
