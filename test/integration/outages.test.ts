import { expect, inject, it } from 'vitest';

import type { Engine } from '../../src/engine/open-engine.js';
import { ManualClock } from '../../src/runtime/clock.js';
import { until } from '../support/until.js';
import { describeOnPostgres, drafts, submitAll, TestWorker, type TestServer } from './support.js';

const leaseMs = 30_000;
const awayMs = 120_000;
const count = 50;

/** One server with its ready queue in memory, or two that share one. */
interface Kind {
  readonly servers: number;
  readonly shared: boolean;
}

const kinds: Kind[] = [
  { servers: 1, shared: false },
  { servers: 2, shared: true },
];

/** The servers go and come back; nothing but the database is left of them meanwhile. */
class Outages {
  readonly clock = new ManualClock(Date.now());
  readonly #server: TestServer;
  readonly #kind: Kind;
  #engines: readonly Engine[] = [];

  constructor(server: TestServer, kind: Kind) {
    this.#server = server;
    this.#kind = kind;
  }

  async begin(): Promise<Engine> {
    const { servers, shared } = this.#kind;
    const options = {
      clock: this.clock,
      settings: { leaseMs },
      ...(shared ? { redisUrl: inject('redisUrl') } : {}),
    };
    this.#engines = await Promise.all(
      Array.from({ length: servers }, () => this.#server.open(options)),
    );
    const [engine] = this.#engines;
    if (engine === undefined) throw new Error('there is no server');
    return engine;
  }

  async away(): Promise<Engine> {
    await Promise.all(this.#engines.map((engine) => engine.close()));
    this.clock.advance(awayMs);
    return this.begin();
  }
}

describeOnPostgres('servers and Postgres away for two minutes, three times', (server) => {
  it.each(kinds)('R-RE1: a worker that outlasts it keeps what it runs, with %o', async (kind) => {
    const queue = `kept-${kind.servers}`;
    const outages = new Outages(server(), kind);
    let engine = await outages.begin();
    const { workerId } = await TestWorker.register(engine, { queues: [queue] });
    const draft = { taskType: 'long', queue, maxRetries: 0, timeoutSeconds: 3_600 };
    await submitAll(engine, drafts(count, draft));
    const held = await new TestWorker(engine, workerId).take(count);
    for (let outage = 0; outage < 3; outage++) {
      engine = await outages.away();
      const worker = new TestWorker(engine, workerId);
      // Not at once: the others may be quicker to see that it was silent.
      outages.clock.advance(leaseMs - 1);
      await untilSwept(engine);
      expect(await worker.beat(held)).toMatchObject({ lost: [] });
    }
    const answers = await new TestWorker(engine, workerId).completeAll(held);
    expect(answers.filter(({ accepted }) => accepted)).toHaveLength(count);
  });

  it.each(kinds)(
    'R-RE1: what a worker held that died in it goes to another at no cost, with %o',
    async (kind) => {
      const queue = `lost-${kind.servers}`;
      const outages = new Outages(server(), kind);
      let engine = await outages.begin();
      await submitAll(engine, drafts(count, { taskType: 'noop', queue, maxRetries: 0 }));
      for (let outage = 0; outage < 3; outage++) {
        const doomed = await TestWorker.register(engine, { queues: [queue] });
        await doomed.take(count);
        engine = await outages.away();
        await untilSwept(engine);
        outages.clock.advance(leaseMs + 1);
        await until('all to have lapsed', async () => (await countHeld(queue)) === 0);
        outages.clock.advance(3_000);
      }
      const worker = await TestWorker.register(engine, { queues: [queue] });
      const tasks = await worker.take(count);
      expect(tasks.filter(({ retryCount }) => retryCount > 0)).toEqual([]);
      const answers = await worker.completeAll(tasks);
      expect(answers.filter(({ accepted }) => accepted)).toHaveLength(count);
    },
  );

  /** A task that a sweep fails shows that it took place. */
  async function untilSwept(engine: Engine): Promise<void> {
    const marker = { taskType: 'x', queue: 'nobody', dispatchDeadlineSeconds: 0 };
    const { taskId } = await engine.submit(marker);
    await until('a sweep', async () => (await engine.getTask(taskId)).status === 'failed');
  }

  async function countHeld(queue: string): Promise<number> {
    const [row] = await server().sql<{ held: number }>(
      `select count(*)::int as held from sluice.tasks
       where queue = $1 and worker_id is not null`,
      [queue],
    );
    return row?.held ?? 0;
  }
});
