import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Engine } from '../../src/engine/open-engine.js';
import { silentLog } from '../../src/runtime/log.js';
import { serve } from '../../src/server/serve.js';
import { WebhookSender, type SenderOptions } from '../../src/server/webhooks/sender.js';
import { describeOnPostgres, drafts, submitAll, TestWorker } from '../integration/support.js';
import { freshPglite } from '../support/pglite.js';
import { until } from '../support/until.js';

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

interface Told {
  readonly type: string;
  readonly data: Record<string, unknown>;
}

interface Post {
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** Whom alerts are told: notes every post, and answers as the test wants. */
class Receiver {
  readonly posts: Post[] = [];
  /** Those that were answered 2xx. */
  readonly taken: Told[] = [];
  answer: (response: ServerResponse) => void = (response) => response.writeHead(204).end();
  readonly #server = createServer((request, response) => void this.#heed(request, response));

  async open(port = 0): Promise<string> {
    this.#server.listen(port, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hook`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #heed(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    this.posts.push({ headers: request.headers as Record<string, string>, body });
    response.on('finish', () => {
      if (response.statusCode < 300) this.taken.push(JSON.parse(body) as Told);
    });
    this.answer(response);
  }
}

describeOnPostgres('R-WH1: the webhook of alerts', (postgres) => {
  let engine: Engine;
  let receiver: Receiver;
  let url: string;
  const senders: WebhookSender[] = [];

  beforeEach(async () => {
    await sql('truncate sluice.webhook_deliveries restart identity');
    engine = await postgres().open();
    receiver = new Receiver();
    url = await receiver.open();
  });
  afterEach(async () => {
    await Promise.all(senders.splice(0).map((sender) => sender.stop()));
    await receiver.close();
  });

  const start = (options: Partial<SenderOptions> = {}): WebhookSender => {
    const sender = new WebhookSender({
      outbox: engine.outbox,
      name: 'alerts',
      target: { url, secret, format: 'standard' },
      log: silentLog,
      lookEveryMs: 20,
      ...options,
    });
    senders.push(sender);
    sender.start();
    return sender;
  };

  /** Tries of the past become due again: their delays are tested elsewhere. */
  const hurry = () => sql(`update sluice.webhook_deliveries set due_at = now()`);
  const sql = <Row>(statement: string) => postgres().sql<Row>(statement);
  const messages = (...types: string[]) =>
    sql(`insert into sluice.webhook_deliveries
        (message_id, target, event_type, event, created_at, due_at)
      select 'msg_' || n, 'alerts', type, '{"name":"queue_depth","severity":"warning"}', now(), now()
      from unnest(array['${types.join("','")}']) with ordinality as told (type, n)`);
  const areAllDelivered = async () =>
    (await sql('select from sluice.webhook_deliveries')).length === 0;

  it('is signed so that the official package of Standard Webhooks accepts it', async () => {
    start();
    await messages('alert.firing');
    await until('the message', () => receiver.taken.length === 1);
    const [post] = receiver.posts;
    if (post === undefined) throw new Error('there is a post');
    expect(new Webhook(secret).verify(post.body, post.headers)).toMatchObject({
      type: 'alert.firing',
      data: { name: 'queue_depth' },
    });
    expect(() => new Webhook(secret).verify(`${post.body} `, post.headers)).toThrow();
    expect(post.headers['webhook-id']).toBe('msg_1');
  });

  it('is told what happened while it was down once it is back: once, and in order', async () => {
    const { port } = new URL(url);
    await receiver.close();
    start();
    await messages('alert.firing', 'alert.resolved');
    await until('a try', async () => (await tries()) > 0);
    receiver = new Receiver();
    await receiver.open(Number(port));
    await until('both messages', async () => {
      await hurry();
      return receiver.taken.length >= 2 && areAllDelivered();
    });
    expect(receiver.taken.map(({ type }) => type)).toEqual(['alert.firing', 'alert.resolved']);
  });

  it.each([
    ['answers 500', (response: ServerResponse) => response.writeHead(500).end()],
    ['redirects', (response: ServerResponse) => response.writeHead(302, { location: '/x' }).end()],
    ['hangs', () => undefined],
    ['cuts the connection', (response: ServerResponse) => response.socket?.destroy()],
  ])(
    'one that %s is tried again with the same id until it takes the message, once',
    async (_, bad) => {
      receiver.answer = bad;
      start({ patienceMs: 200 });
      await messages('alert.firing', 'alert.resolved');
      await until('three tries', async () => {
        await hurry();
        return receiver.posts.length >= 3;
      });
      receiver.answer = (response) => response.writeHead(200).end('thanks');
      await until('all to be delivered', async () => {
        await hurry();
        return areAllDelivered();
      });
      expect(receiver.taken.map(({ type }) => type)).toEqual(['alert.firing', 'alert.resolved']);
      const ids = receiver.posts.map(({ headers }) => headers['webhook-id']);
      expect(new Set(ids.slice(0, -1))).toEqual(new Set(['msg_1']));
      expect(ids.at(-1)).toBe('msg_2');
    },
  );

  it('of two servers at once one sends each message', async () => {
    const other = await postgres().open({ role: 'submit' });
    start();
    start({ outbox: other.outbox });
    await messages(...Array.from({ length: 30 }, () => 'alert.firing'));
    await until('all to be delivered', areAllDelivered);
    expect(receiver.posts.map(({ headers }) => headers['webhook-id'])).toEqual(
      Array.from({ length: 30 }, (_, index) => `msg_${index + 1}`),
    );
  });

  it('a server that ends while a receiver hangs ends at once, and the next one sends the message', async () => {
    receiver.answer = () => undefined;
    const sender = start({ patienceMs: 600_000 });
    await messages('alert.firing');
    await until('a try', () => receiver.posts.length === 1);
    await sender.stop();
    receiver.answer = (response) => response.writeHead(200).end();
    start();
    await until('the message', areAllDelivered);
    expect(receiver.posts.map(({ headers }) => headers['webhook-id'])).toEqual(['msg_1', 'msg_1']);
  });

  it('Slack gets a text in which no name is a link', async () => {
    start({ target: { url, secret: null, format: 'slack' } });
    await sql(`insert into sluice.webhook_deliveries
        (message_id, target, event_type, event, created_at, due_at)
      values ('m', 'alerts', 'alert.firing', json_build_object('name', 'queue_depth', 'severity',
        'critical', 'summary', 'queue <!channel> & co', 'runbook', 'docs/alerts.md'), now(), now())`);
    await until('the message', () => receiver.posts.length === 1);
    expect(JSON.parse(receiver.posts[0]?.body ?? '') as unknown).toEqual({
      text: ':red_circle: *Sluice: queue_depth* fires (critical)\nqueue &lt;!channel&gt; &amp; co\ndocs/alerts.md',
    });
    expect(receiver.posts[0]?.headers['webhook-signature']).toBeUndefined();
  });

  it('R-AD7: at most 1,000 messages wait, and the newest stay', async () => {
    await messages(...Array.from({ length: 1_010 }, () => 'alert.firing'));
    await engine.outbox.added('alerts');
    const [row] = await sql<{ count: number; least: number }>(
      'select count(*)::int as count, min(id)::int as least from sluice.webhook_deliveries',
    );
    expect(row).toEqual({ count: 1_000, least: 11 });
  });

  async function tries(): Promise<number> {
    const [row] = await sql<{ tries: number }>(
      'select max(tries)::int as tries from sluice.webhook_deliveries',
    );
    return row?.tries ?? 0;
  }
});

it('R-OB3: a server tells a webhook that an alert fires and that it is over, and shows its numbers', async () => {
  const receiver = new Receiver();
  const url = await receiver.open();
  const server = await serve({
    host: '127.0.0.1',
    port: 0,
    database: freshPglite(),
    alertIntervalMs: 20,
    alertWebhook: { url, secret, format: 'standard' },
  });
  try {
    const { workerId } = await server.engine.register({ capacity: 1 });
    await server.engine.heartbeat(workerId, { currentLoad: 1, status: 'active' });
    await server.engine.putAlert('idle_workers_low', { forSeconds: 0 });
    await until('it to fire', () => receiver.taken.length === 1);
    expect(receiver.taken[0]).toMatchObject({
      type: 'alert.firing',
      data: { name: 'idle_workers_low', state: 'firing', value: 0, threshold: 0.2, labels: {} },
    });
    const scraped = await (await fetch(`${server.url}/metrics`)).text();
    expect(scraped).toMatch(/^sluice_oldest_waiting_seconds\{priority="medium"\} 0$/m);
    expect(scraped).toMatch(/^sluice_workers_idle 0$/m);
    await server.engine.heartbeat(workerId, { currentLoad: 0, status: 'active' });
    await until('it to be over', () => receiver.taken.length === 2);
    expect(receiver.taken[1]).toMatchObject({
      type: 'alert.resolved',
      data: { name: 'idle_workers_low', state: 'resolved', value: 1, threshold: 0.2 },
    });
  } finally {
    await server.close();
    await receiver.close();
  }
});

it('R-WH1: a receiver that hangs is in no way of tasks or alerts, and is told of each once when it answers', async () => {
  const receiver = new Receiver();
  const hanging: ServerResponse[] = [];
  receiver.answer = (response) => hanging.push(response);
  const url = await receiver.open();
  const server = await serve({
    host: '127.0.0.1',
    port: 0,
    database: freshPglite(),
    alertIntervalMs: 20,
    alertWebhook: { url, secret, format: 'standard' },
  });
  const { engine } = server;
  const stateOf = async (name: string) =>
    (await engine.listAlerts()).items.find((view) => view.name === name)?.state;
  const worker = await TestWorker.register(engine, { queues: ['flow'] });
  const flow = async (count: number) => {
    await submitAll(engine, drafts(count, { taskType: 'call', queue: 'flow' }));
    for (const { accepted } of await worker.completeAll(await worker.take(count))) {
      expect(accepted).toBe(true);
    }
  };
  try {
    await engine.putAlert('queue_depth', { threshold: 5, forSeconds: 0 });
    await submitAll(engine, drafts(6, { taskType: 'call', queue: 'parked' }));
    await until('the receiver to hang', () => hanging.length === 1);
    expect(await stateOf('queue_depth')).toBe('firing');
    await flow(200);
    await engine.cancelTasks({ queue: 'parked' });
    await until('it to be over', async () => (await stateOf('queue_depth')) === 'ok');
    await flow(200);
    // All of this while the first message waits for its answer.
    expect(receiver.posts).toHaveLength(1);

    receiver.answer = (response) => response.writeHead(204).end();
    for (const response of hanging) response.destroy();
    await until('both messages', () => receiver.taken.length >= 2);
    await server.close();
    const [hung, again, last] = receiver.posts.map(({ headers }) => headers['webhook-id']);
    expect(receiver.posts).toHaveLength(3);
    expect([again, last === hung]).toEqual([hung, false]);
    expect(receiver.taken.map(({ type, data }) => [type, data.name, data.labels])).toEqual([
      ['alert.firing', 'queue_depth', { queue: 'parked' }],
      ['alert.resolved', 'queue_depth', { queue: 'parked' }],
    ]);
  } finally {
    await server.close();
    await receiver.close();
  }
});

it('R-OB3: a server that was told not to evaluates nothing, and has no numbers', async () => {
  const server = await serve({
    host: '127.0.0.1',
    port: 0,
    database: freshPglite(),
    alertIntervalMs: 0,
  });
  try {
    const { evaluatedAt } = await server.engine.listAlerts();
    expect(evaluatedAt).toBeNull();
    const scraped = await (await fetch(`${server.url}/metrics`)).text();
    expect(scraped).not.toMatch(/^sluice_workers_idle /m);
    expect(scraped).toContain('sluice_workers{status="active"} 0');
  } finally {
    await server.close();
  }
});
