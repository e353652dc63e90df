import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import type { ScalingSettings } from '../../src/domain/scaling.js';
import { openEngine, type Engine } from '../../src/engine/open-engine.js';
import type { QueueDraft } from '../../src/protocol/queues-api.js';
import type { ScalingWire } from '../../src/protocol/scaling-schema.js';
import type { TaskDraft } from '../../src/protocol/tasks-api.js';
import { silentLog } from '../../src/runtime/log.js';
import { Asking } from '../../src/server/provisioner/asking.js';
import { WebhookProvisioner } from '../../src/server/provisioner/webhook.js';
import { serve, type RunningServer } from '../../src/server/serve.js';
import { drafts, submitAll, TestWorker } from '../integration/support.js';
import { createTestDatabase } from '../support/postgres.js';
import { until } from '../support/until.js';

/** Looks anew nearly every time it is asked, and remembers nothing. */
const quick: Partial<ScalingSettings> = { max: 10, concurrency: 4, intervalMs: 1, quietMs: 0 };
/** Test workers send no heartbeats. */
const patient = { leaseMs: 3_600_000, heartbeatIntervalMs: 60_000 };
/** Nothing comes back while a test looks. */
const slow = { unit: 'requests', rate: 1, perSeconds: 31_536_000, burst: 3 };
const secret = 'a secret of enough characters';

interface Post {
  readonly path: string;
  readonly body: string;
  readonly headers: IncomingMessage['headers'];
}

/** What would start workers somewhere: notes what it is told, and answers as the test wants. */
class Receiver {
  readonly posts: Post[] = [];
  answer: (response: ServerResponse) => void = (response) => response.writeHead(204).end();
  readonly #server = createServer((request, response) => void this.#heed(request, response));

  async open(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #heed(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    this.posts.push({ path: request.url ?? '', body, headers: request.headers });
    this.answer(response);
  }
}

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** One for each group: whoever serves from memory serves alone. */
function useDatabase(): () => { kind: 'postgres'; url: string } {
  let created: Awaited<ReturnType<typeof createTestDatabase>>;
  beforeAll(async () => {
    created = await createTestDatabase();
  });
  afterAll(() => created.drop());
  return () => ({ kind: 'postgres', url: created.url });
}

async function openReceiver(): Promise<{ receiver: Receiver; address: string }> {
  const receiver = new Receiver();
  const address = await receiver.open();
  closing.push(() => receiver.close());
  return { receiver, address };
}

describe('GET /api/v1/scaling', () => {
  let server: RunningServer;
  let engine: Engine;
  const database = useDatabase();
  beforeAll(async () => {
    const where = { host: '127.0.0.1', port: 0, database: database() };
    server = await serve({ ...where, settings: patient, scaling: quick });
    ({ engine } = server);
  });
  afterAll(() => server.close());
  afterEach(async () => {
    await engine.cancelTasks({ taskType: 'chat' });
    const { items } = await engine.listWorkers();
    const living = items.filter(({ status }) => status !== 'dead');
    for (const { workerId } of living) await engine.deregister(workerId);
  });

  const scaling = async () =>
    (await (await fetch(`${server.url}/api/v1/scaling`)).json()) as ScalingWire;

  /** As soon as it has seen so many tasks of this queue. */
  const untilDue = (queue: string, due: number) =>
    until(`${due} tasks of ${queue} to be seen`, async () => {
      const seen = await scaling();
      return seen.queues.some((each) => each.queue === queue && each.due === due) && seen;
    });

  const submit = (queue: string, count: number, draft: Partial<TaskDraft> = {}) =>
    submitAll(engine, drafts(count, { taskType: 'chat', queue, ...draft }));

  it('R-AD5: says how many workers there should be, how many there are, and why', async () => {
    await submit('plain', 9);
    expect(await untilDue('plain', 9)).toEqual({
      desired: 3,
      current: 0,
      min: 0,
      max: 10,
      waiting: 9,
      reason: '9 tasks wait for a worker; there are 0 workers with 0 free slots.',
      queues: [{ queue: 'plain', due: 9, waiting: 9, held_up_by: null }],
      provisioner: { kind: 'none', last_asked_at: null, failing_since: null, error: null },
    });
    const worker = await TestWorker.register(engine, { capacity: 4 });
    await worker.take(4);
    await until('the worker and what it took to be seen', async () => {
      const { desired, current, waiting } = await scaling();
      return desired === 3 && current === 1 && waiting === 5;
    });
    expect(await (await fetch(`${server.url}/metrics`)).text()).toMatch(
      /^sluice_scaling_desired_workers 3$/m,
    );
  });

  it('R-AD5: is bounded', async () => {
    await submit('many', 500);
    expect(await untilDue('many', 500)).toMatchObject({ desired: 10, waiting: 500 });
  });

  const held: [string, string, QueueDraft][] = [
    ['tokens', 'rate_limit', { limits: [slow] }],
    ['a pause', 'paused', { paused: true }],
    ['a slot of its queue', 'max_concurrency', { maxConcurrency: 3 }],
  ];
  it.each(held)('R-AD5: what waits for %s asks for nobody', async (_, heldUpBy, change) => {
    const queue = heldUpBy;
    await engine.putQueue(queue, change);
    const worker = await TestWorker.register(engine, { capacity: 3 });
    await submit(queue, 500);
    const running = heldUpBy === 'paused' ? 0 : 3;
    if (running > 0) await worker.take(running);
    const seen = await untilDue(queue, 500 - running);
    expect(seen).toMatchObject({ waiting: 0, current: 1, desired: running > 0 ? 1 : 0 });
    expect(seen.queues).toMatchObject([{ queue, waiting: 0, held_up_by: heldUpBy }]);
  });

  it('R-AD5: neither does what waits for its time or its turn, nor behind an open circuit', async () => {
    await submit('later', 50, { delaySeconds: 600 });
    await submit('in-turn', 50, { workflowId: 'w' });
    const { queues, waiting } = await untilDue('in-turn', 1);
    expect({ queues: queues.map(({ queue }) => queue), waiting }).toEqual({
      queues: ['in-turn'],
      waiting: 1,
    });

    const worker = await TestWorker.register(engine, { capacity: 4, queues: ['broken'] });
    await submit('broken', 500);
    // One refused task says nothing of its service; three in a row do.
    for (const task of await worker.take(3)) {
      await worker.fail(task, { code: 'RATE_LIMITED', retryAfterSeconds: 600 });
    }
    const seen = await until('the circuit to be seen', async () => {
      const now = await scaling();
      return now.queues.find(({ held_up_by }) => held_up_by === 'circuit_open');
    });
    expect(seen).toMatchObject({ queue: 'broken', waiting: 0 });
  });

  it('R-CH3, R-AD5: free slots of those who can not do it are of no use', async () => {
    await TestWorker.register(engine, { capacity: 100 });
    await submit('gpu', 8, { requiredCapabilities: ['gpu'] });
    expect(await untilDue('gpu', 8)).toMatchObject({ current: 1, desired: 3 });
  });
});

describe('R-AD5: a webhook that is asked for workers', () => {
  let engine: Engine;
  const database = useDatabase();
  beforeAll(async () => {
    engine = await openEngine({ database: database(), settings: patient, scaling: quick });
    await submitAll(engine, drafts(9, { taskType: 'chat' }));
  });
  afterAll(() => engine.close());

  const ask = (url: string, patienceMs = 10_000): Asking => {
    const provisioner = new WebhookProvisioner({ url, secret });
    const asking = new Asking({ scaler: engine.scaler, provisioner, log: silentLog, patienceMs });
    closing.push(() => asking.stop());
    return asking;
  };
  const provisioner = async () => (await engine.getScaling()).provisioner;

  it('is told an absolute number, and can tell who told it and when', async () => {
    const { receiver, address } = await openReceiver();
    await ask(`${address}/scale`).tick();
    const [{ path, body, headers } = { path: '', body: '', headers: {} }] = receiver.posts;
    expect(path).toBe('/scale');
    expect(JSON.parse(body)).toMatchObject({ desired: 3, current: 0, min: 0, max: 10, waiting: 9 });
    const sentAt = String(headers['sluice-timestamp']);
    const signature = createHmac('sha256', secret).update(`${sentAt}.${body}`).digest('hex');
    expect(headers['sluice-signature']).toBe(`sha256=${signature}`);
    expect(Math.abs(Number(sentAt) - Date.now() / 1000)).toBeLessThan(600);
    expect(await provisioner()).toEqual({
      kind: 'webhook',
      lastAskedAt: expect.any(Date) as unknown,
      failingSince: null,
      error: null,
    });
  });

  it('is followed nowhere else', async () => {
    const elsewhere = await openReceiver();
    const { receiver, address } = await openReceiver();
    receiver.answer = (response) => response.writeHead(307, { location: elsewhere.address }).end();
    await ask(address).tick();
    expect(elsewhere.receiver.posts).toEqual([]);
    expect(await provisioner()).toMatchObject({ error: 'The webhook answered 307.' });
  });

  it('is cut off when it does not answer', async () => {
    const { receiver, address } = await openReceiver();
    receiver.answer = () => undefined;
    await ask(address, 100).tick();
    expect(receiver.posts).toHaveLength(1);
    expect(await provisioner()).toMatchObject({
      error: 'The webhook provisioner did not answer in 0.1 s.',
      failingSince: expect.any(Date) as unknown,
    });
  });

  it('is asked again after a failure, and is well again when it answers', async () => {
    const { receiver, address } = await openReceiver();
    receiver.answer = (response) => response.writeHead(503).end();
    const asking = ask(address);
    await until('several failures', async () => {
      await asking.tick();
      return receiver.posts.length >= 3;
    });
    expect(asking.failure).toBe('The webhook answered 503.');
    const { failingSince } = await provisioner();
    receiver.answer = (response) => response.writeHead(200).end();
    await until('an answer', async () => {
      await asking.tick();
      return asking.failure === null;
    });
    expect(failingSince).not.toBeNull();
    expect(await provisioner()).toMatchObject({ failingSince: null, error: null });
  });
});

describe('R-AD5: a provisioner that always fails', () => {
  const database = useDatabase();
  it('is retried with backoff and reported; nothing else changes', async () => {
    const { receiver, address } = await openReceiver();
    receiver.answer = (response) => response.writeHead(500).end();
    // Its first rest is longer than this test takes.
    const intervalMs = 600_000;
    const server = await serve({
      ...{ host: '127.0.0.1', port: 0, database: database() },
      settings: patient,
      scaling: { ...quick, intervalMs },
      provisioner: () => new WebhookProvisioner({ url: address, secret }),
    });
    closing.push(() => server.close());
    const { engine, url } = server;
    const failing = await until('the failure to be told', async () => {
      const { provisioner } = await engine.getScaling();
      return provisioner.failingSince !== null && provisioner;
    });
    expect(failing).toMatchObject({ kind: 'webhook', error: 'The webhook answered 500.' });
    const health = await fetch(`${url}/healthz`);
    expect(health.status).toBe(200);
    expect(await health.json()).toEqual({
      status: 'live',
      notes: ['Asking for workers fails; GET /api/v1/scaling says why.'],
    });
    const worker = await TestWorker.register(engine);
    const [taskId] = await submitAll(engine, drafts(1, { taskType: 'chat' }));
    const task = await worker.takeOne();
    expect(task.taskId).toBe(taskId);
    expect(await worker.complete(task)).toMatchObject({ accepted: true });
    const provisioner = new WebhookProvisioner({ url: address, secret });
    const asking = new Asking({ scaler: engine.scaler, provisioner, log: silentLog });
    for (let again = 0; again < 5; again++) await asking.tick();
    // Once by the server, and once by the one that ticked five times.
    expect(receiver.posts).toHaveLength(2);
  });
});

describe('R-AD5: of several servers', () => {
  const database = useDatabase();
  it('one asks at a time, and another goes on when it is gone', async () => {
    const { receiver, address } = await openReceiver();
    const open = async (name: string) => {
      const where = { database: database(), redisUrl: inject('redisUrl') };
      const engine = await openEngine({ ...where, settings: patient, scaling: quick });
      const provisioner = new WebhookProvisioner({ url: `${address}/${name}`, secret });
      const asking = new Asking({ scaler: engine.scaler, provisioner, log: silentLog });
      return { engine, asking };
    };
    const one = await open('one');
    const two = await open('two');
    await submitAll(one.engine, drafts(9, { taskType: 'chat' }));
    for (let again = 0; again < 3; again++) {
      await one.asking.tick();
      await two.asking.tick();
    }
    expect(receiver.posts.map(({ path }) => path)).toEqual(['/one', '/one', '/one']);
    const { provisioner } = await two.engine.getScaling();
    expect(provisioner).toMatchObject({
      kind: 'webhook',
      lastAskedAt: expect.any(Date) as unknown,
    });
    await one.asking.stop();
    await one.engine.close();
    await two.asking.tick();
    expect(receiver.posts.at(-1)?.path).toBe('/two');
    await two.asking.stop();
    await two.engine.close();
  });
});
