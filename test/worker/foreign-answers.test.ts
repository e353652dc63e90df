import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { defineTask } from '../../src/client/define-task.js';
import { NodeHttpApi } from '../../src/client/node-http-api.js';
import { openEngine, type Engine } from '../../src/engine/open-engine.js';
import { silentLog, type Logger } from '../../src/runtime/log.js';
import type { App } from '../../src/server/app-parts.js';
import { Worker } from '../../src/worker/worker.js';
import { buildKeyedApp, listening } from '../http/keyed.js';
import { AnsweringProxy, html, type ForeignAnswer } from '../support/answering-proxy.js';
import { Gate } from '../support/gate.js';
import { freshPglite } from '../support/pglite.js';
import { until } from '../support/until.js';
import { withTerms } from './transport.js';
import { unique, Workbench } from './workbench.js';

const json = (status: number, body: unknown): ForeignAnswer => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

const foreignAnswers: readonly [string, ForeignAnswer][] = [
  ...[400, 401, 403, 404, 409, 413, 429, 500, 502, 200].map((status): [string, ForeignAnswer] => [
    `HTML with ${status}`,
    html(status),
  ]),
  ['204', { status: 204 }],
  ['200 with nothing', { status: 200 }],
  ['200 with null', json(200, null)],
  ['200 with JSON of something else', json(200, { ok: true })],
  [
    '200 with a list that names no task',
    json(200, { results: [{}], tasks: [{}], cancelled: [], lost: [] }),
  ],
  ['a redirect', { status: 302, headers: { location: 'https://login.example/' } }],
  ['an answer that is cut off', { ...json(200, { results: [] }), isCut: true }],
  ['the right answer, cut off', { ...html(200), isCut: true, afterwards: true }],
  ['a 404 after the server took it', { ...html(404), afterwards: true }],
  [
    "a gateway's own problem document",
    json(401, { code: 'unauthorized', detail: 'Token missing', status: 401, title: 'no' }),
  ],
  [
    'a problem document with a code that is not known here',
    json(409, {
      type: '/docs#from_the_future',
      title: 't',
      status: 409,
      code: 'from_the_future',
      detail: 'd',
    }),
  ],
  [
    'a known code with another status',
    json(404, {
      type: '/docs#payload_too_large',
      title: 't',
      status: 404,
      code: 'payload_too_large',
      detail: 'd',
    }),
  ],
];

interface Line {
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Keeps what is logged, however severe. */
function noting(lines: Line[]): Logger {
  const note = (fields: unknown, message?: string): void => {
    if (typeof fields === 'string') lines.push({ message: fields, fields: {} });
    else lines.push({ message: message ?? '', fields: fields as Line['fields'] });
  };
  const isLevelEnabled = () => true;
  return {
    ...silentLog,
    isLevelEnabled,
    debug: note,
    info: note,
    warn: note,
    error: note,
  } as Logger;
}

describe('a worker behind a proxy that answers in the place of the server', () => {
  let engine: Engine;
  let app: App;
  let proxy: AnsweringProxy;
  let bench: Workbench;
  let key: { id: string; key: string };

  beforeAll(async () => {
    const settings = { sweepIntervalMs: 20, timeoutGraceMs: 500 };
    engine = await openEngine({ database: freshPglite(), settings });
    await engine.keys.watch();
    app = buildKeyedApp(engine);
    key = await engine.createKey({ name: 'a test', scopes: ['admin'] });
    proxy = await AnsweringProxy.start(await listening(app));
    const api = new NodeHttpApi(proxy.url, { apiKey: key.key });
    const none = async () => undefined;
    bench = new Workbench({ api, cut: none, restore: none, close: none });
  });

  afterAll(async () => {
    await proxy[Symbol.asyncDispose]();
    await app.close();
    await engine.close();
  });

  /** Answers the first `times` requests to one call of workers. */
  function intercept(call: string, answer: ForeignAnswer, times: number): void {
    proxy.answered = 0;
    proxy.judge = (path) => (path.endsWith(`/${call}`) && proxy.answered < times ? answer : null);
  }

  /** Runs tasks that end together, whose first results are answered by the proxy. */
  async function endAll(tasks: number, answer: ForeignAnswer, times: number) {
    const runs: string[] = [];
    const go = new Gate();
    const slow = defineTask({
      type: unique('slow'),
      run: async (_, { task }) => {
        runs.push(task.taskId);
        await go.passed;
        return 'kept';
      },
    });
    return bench.working([slow], async () => {
      const handles = await bench.submitAll(slow, tasks);
      await until('all to run', () => runs.length === tasks);
      intercept('result', answer, times);
      go.open();
      const ended = await Promise.all(handles.map((handle) => handle.ended()));
      await until('the proxy to have answered', () => proxy.answered === times);
      return { runs, ended: ended.map(({ status, attempt }) => ({ status, attempt })) };
    });
  }

  const completedAtOnce = { status: 'completed', attempt: 1 };

  it.each(foreignAnswers)(
    'R-HA1: a result answered with %s is kept and sent again; its task neither fails nor runs twice',
    async (_, answer) => {
      const { runs, ended } = await endAll(1, answer, 2);
      expect(ended).toEqual([completedAtOnce]);
      expect(runs).toHaveLength(1);
    },
  );

  it('R-HA1: many results that end together are kept alike', async () => {
    const { runs, ended } = await endAll(20, html(404), 5);
    expect(ended).toEqual(ended.map(() => completedAtOnce));
    expect(runs).toHaveLength(20);
  });

  it('R-HA1: while results are refused by a proxy, their tasks count as held', async () => {
    const done = defineTask({ type: unique('done'), run: () => 'kept' });
    const api = withTerms(bench.api, { heartbeatIntervalMs: 20, leaseMs: 60_000 });
    await bench.working(
      [done],
      async () => {
        intercept('result', html(404), Infinity);
        const handle = await bench.sluice.submit(done, {});
        await until('a few tries', () => proxy.answered >= 4);
        await expect(handle.status()).resolves.toMatchObject({ status: 'executing', attempt: 1 });
        proxy.judge = () => null;
        await expect(handle.result()).resolves.toBe('kept');
        await expect(handle.status()).resolves.toMatchObject({ attempt: 1 });
      },
      { api },
    );
  });

  it.each([
    ['refuses it', html(404)],
    ['keeps it waiting', { ...html(404), delayMs: 60_000 }],
  ])(
    'R-HA1: a task whose result does not arrive does not time out: a proxy %s',
    async (_, answer) => {
      const times = { timeoutSeconds: 2, maxRetries: 0 };
      const done = defineTask({ type: unique('done'), ...times, run: () => 'kept' });
      await bench.working([done], async () => {
        intercept('result', answer, Infinity);
        const handle = await bench.sluice.submit(done, {});
        await until('its end', () => proxy.answered > 0);
        // One that nobody ends is timed out, and shows that the sweeper was there.
        const never = { taskType: unique('never'), ...times };
        const { taskId } = await engine.submit(never);
        const { workerId } = await engine.register({ taskTypes: [never.taskType] });
        await engine.poll(workerId, { availableCapacity: 1 });
        await until('a timeout', async () => {
          await engine.heartbeat(workerId, { currentLoad: 1, status: 'active' });
          return (await engine.getTask(taskId)).status !== 'executing';
        });
        await expect(handle.status()).resolves.toMatchObject({ status: 'executing', attempt: 1 });
        proxy.judge = () => null;
        proxy.hangUp();
        await expect(handle.ended()).resolves.toMatchObject({ status: 'completed', attempt: 1 });
        await engine.deregister(workerId);
      });
    },
  );

  it('R-HA1: a task that ends while nothing gets through, heartbeats neither, does not time out', async () => {
    const times = { timeoutSeconds: 1, maxRetries: 0 };
    const begun = new Gate();
    const cut = new Gate();
    const run = async (): Promise<string> => {
      begun.open();
      await cut.passed;
      return 'kept';
    };
    const done = defineTask({ type: unique('done'), ...times, run });
    await bench.working([done], async () => {
      const handle = await bench.sluice.submit(done, {});
      await begun.passed;
      proxy.judge = (path) => (path.startsWith('/internal/') ? html(502) : null);
      cut.open();
      // One that nobody ends is timed out, and shows that the sweeper was there.
      const never = { taskType: unique('never'), ...times };
      const { taskId } = await engine.submit(never);
      const { workerId } = await engine.register({ taskTypes: [never.taskType] });
      await engine.poll(workerId, { availableCapacity: 1 });
      await until('a timeout', async () => {
        await engine.heartbeat(workerId, { currentLoad: 1, status: 'active' });
        return (await engine.getTask(taskId)).status !== 'executing';
      });
      await expect(engine.getTask(handle.id)).resolves.toMatchObject({ status: 'executing' });
      proxy.judge = () => null;
      await expect(handle.ended()).resolves.toMatchObject({ status: 'completed', attempt: 1 });
      await engine.deregister(workerId);
    });
  });

  it('R-HA1: a result that a proxy refuses for what it holds delays no other', async () => {
    const echo = defineTask({ type: unique('echo'), run: (input) => input });
    await bench.working([echo], async () => {
      let refused = 0;
      proxy.judge = () => null;
      proxy.judgeBody = (path, body) => {
        if (!path.endsWith('/result') || !body.includes('<script>')) return null;
        refused += 1;
        return html(403);
      };
      const bad = await bench.sluice.submit(echo, { text: '<script>' });
      await until('it to be refused', () => refused > 0);
      const others = await bench.submitAll(echo, 50);
      await Promise.all(others.map((handle) => handle.result()));
      // Alone each time: the others never shared a call with it again.
      expect(refused).toBeLessThan(8);
      proxy.judgeBody = () => null;
      await expect(bad.ended()).resolves.toMatchObject({ status: 'completed', attempt: 1 });
    });
  });

  it.each(['register', 'poll', 'heartbeat'])(
    'R-HA1: no foreign answer to %s counts for one of the server',
    async (call) => {
      const echo = defineTask({ type: unique('echo'), run: (input) => input });
      const api = withTerms(bench.api, { heartbeatIntervalMs: 20, leaseMs: 60_000 });
      const left = foreignAnswers.filter(([, { afterwards }]) => afterwards !== true);
      proxy.answered = 0;
      proxy.judge = (path) =>
        path.endsWith(`/${call}`) ? (left[proxy.answered % left.length]?.[1] ?? null) : null;
      const worker = new Worker(api, [echo], { drainTimeoutMs: 100, log: silentLog });
      const starting = worker.start();
      await until('some tries', () => proxy.answered >= 4);
      proxy.judge = () => null;
      await starting;
      const handle = await bench.sluice.submit(echo, { a: 1 });
      await expect(handle.ended()).resolves.toMatchObject({ status: 'completed', attempt: 1 });
      await worker.stop();
    },
  );

  it.each(foreignAnswers)('R-HA1: %s is not an answer to a call of a worker', async (_, answer) => {
    const { workerId } = await bench.api.register({ capacity: 1 });
    const held = { taskId: workerId as never, lease: workerId as never };
    const calls: readonly [string, () => Promise<unknown>][] = [
      ['register', () => bench.api.register({ capacity: 1 })],
      ['poll', () => bench.api.poll(workerId, { availableCapacity: 0 })],
      ['start', () => bench.api.start(workerId, held)],
      ['progress', () => bench.api.progress(workerId, held, { percent: 1 })],
      ['result', () => bench.api.report(workerId, [{ ...held, status: 'completed' }])],
      ['release', () => bench.api.release(workerId, [held])],
      ['heartbeat', () => bench.api.heartbeat(workerId, { currentLoad: 0, status: 'active' })],
      ['deregister', () => bench.api.deregister(workerId)],
    ];
    for (const [name, call] of calls) {
      intercept(name, answer, 1);
      await expect(call(), name).rejects.toMatchObject({ code: 'unavailable' });
      expect(proxy.answered).toBe(1);
    }
  });

  it('R-HA1: with a revoked key a worker keeps its results, says so once, takes nothing, and leaves when they are sent', async () => {
    const revoked = await engine.createKey({ name: 'to be revoked', scopes: ['worker'] });
    const started = new Gate();
    const go = new Gate();
    const slow = defineTask({
      type: unique('slow'),
      run: async () => {
        started.open();
        await go.passed;
        return 'kept';
      },
    });
    const lines: Line[] = [];
    const api = withTerms(new NodeHttpApi(proxy.url, { apiKey: revoked.key }), {
      heartbeatIntervalMs: 1_000,
      leaseMs: 60_000,
    });
    const worker = new Worker(api, [slow], { log: noting(lines) });
    await worker.start();
    const handle = await bench.sluice.submit(slow, {});
    await started.passed;
    const refusal = json(401, await refusalOf(revoked.id));
    const byKey = (path: string) => (path.startsWith('/internal/') ? refusal : null);
    proxy.answered = 0;
    proxy.judge = byKey;
    go.open();
    await until('it to be refused often', () => proxy.answered > 8);
    const waiting = await bench.sluice.submit(slow, {});
    const said = lines.filter(({ message }) => message.includes('API key'));
    expect(said).toHaveLength(1);
    expect(lines).toEqual(said);
    // The key is good again.
    proxy.judge = () => null;
    await expect(handle.result()).resolves.toBe('kept');
    await expect(handle.status()).resolves.toMatchObject({ attempt: 1 });
    await worker.stopped;
    await expect(waiting.status()).resolves.toMatchObject({ attempt: 0 });
    await waiting.cancel();
  });

  /** What the server itself answers to a worker with this key, once it is revoked. */
  async function refusalOf(id: string): Promise<unknown> {
    const probe = await engine.createKey({ name: `as ${id}`, scopes: ['worker'] });
    await engine.revokeKey(probe.id);
    const answer = await fetch(`${proxy.url}/internal/workers/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${probe.key}` },
      body: '{}',
    });
    expect(answer.status).toBe(401);
    return answer.json();
  }
});
