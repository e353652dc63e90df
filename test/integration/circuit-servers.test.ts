import { afterAll, beforeAll, expect, inject, it } from 'vitest';

import type { AttemptError } from '../../src/domain/attempt-error.js';
import type { Engine } from '../../src/engine/open-engine.js';
import { ManualClock } from '../../src/runtime/clock.js';
import { askRedis, startRedis, type RunningRedis } from '../support/services/redis-server.js';
import { until } from '../support/until.js';
import {
  broken,
  describeOnPostgres,
  drafts,
  submitAll,
  TestWorker,
  type TestServer,
} from './support.js';

const unavailable: AttemptError = { ...broken, code: 'UNAVAILABLE', message: '503' };
const foreverMs = 365 * 24 * 3_600_000;

function open(server: TestServer, clock: ManualClock, redisUrl?: string): Promise<Engine> {
  const settings = { leaseMs: foreverMs };
  return server.open({ clock, settings, ...(redisUrl === undefined ? {} : { redisUrl }) });
}

async function stateOf(engine: Engine, queue: string): Promise<string> {
  return (await engine.getQueue(queue)).live.circuit;
}

/** A queue of a hundred whose service has gone down under forty of them. */
async function broughtDown(engine: Engine, queue: string): Promise<TestWorker> {
  await submitAll(engine, drafts(100, { taskType: 'call', queue }));
  const worker = await TestWorker.register(engine, { queues: [queue] });
  const called = await worker.take(40);
  await Promise.all(called.map((task) => worker.fail(task, unavailable)));
  expect(await stateOf(engine, queue)).toBe('open');
  return worker;
}

/** Two probes, whatever was forgotten; then a quarter of what ran. */
async function goesOn(worker: TestWorker, clock: ManualClock): Promise<void> {
  expect(await worker.look(40)).toEqual([]);
  clock.advance(29_999);
  expect(await worker.look(40)).toEqual([]);
  clock.advance(1);
  const probes = await worker.take(2);
  expect(await worker.look(40)).toEqual([]);
  await worker.completeAll(probes);
  expect(await worker.take(10)).toHaveLength(10);
  expect(await worker.look(40)).toEqual([]);
}

describeOnPostgres('a circuit on two servers', (server) => {
  const openTwo = async (clock: ManualClock) => {
    const redisUrl = inject('redisUrl');
    return Promise.all([open(server(), clock, redisUrl), open(server(), clock, redisUrl)]);
  };

  it('R-RE9, R-CH12: both see the same outage, open once, and probe together', async () => {
    const clock = new ManualClock(Date.now());
    const [first, second] = await openTwo(clock);
    const queue = 'twice';
    await first.putQueue(queue, {});
    await submitAll(first, drafts(100, { taskType: 'call', queue }));
    const workers = await Promise.all(
      [first, second].map((engine) => TestWorker.register(engine, { queues: [queue] })),
    );
    const [here, there] = workers;
    if (here === undefined || there === undefined) throw new Error('there are two');
    const called = await Promise.all(workers.map((worker) => worker.take(20)));
    const { version } = await first.getQueue(queue);
    await Promise.all(
      workers.flatMap((worker, index) =>
        (called[index] ?? []).map((task) => worker.fail(task, unavailable)),
      ),
    );
    for (const engine of [first, second]) {
      const view = await engine.getQueue(queue);
      expect(view).toMatchObject({ version: version + 1, live: { circuit: 'open' } });
    }
    const { items } = await first.listTasks({ queue }, { limit: 100 });
    const retries = items.reduce((sum, { retryCount }) => sum + retryCount, 0);
    // Each server counts what was reported to it.
    expect(retries).toBeLessThanOrEqual(8);

    clock.advance(30_000);
    const look = async () => (await Promise.all(workers.map((worker) => worker.look(10)))).flat();
    // Who was pushed back lets others go first, once.
    const probes = [...(await look()), ...(await look())];
    expect(probes).toHaveLength(2);
    // Whichever server hears of it.
    await there.completeAll(probes);
    expect(await here.take(10)).toHaveLength(10);
    expect(await there.look(40)).toEqual([]);
    clock.advance(20_000);
    await until('it to be closed', async () => (await stateOf(first, queue)) === 'closed');
    expect(await there.take(40)).toHaveLength(40);
  });

  it('R-RE9: opened at one server, it holds for the very next take at the other', async () => {
    const clock = new ManualClock(Date.now());
    const [first, second] = await openTwo(clock);
    await broughtDown(first, 'next');
    const other = await TestWorker.register(second, { queues: ['next'] });
    expect(await other.look(40)).toEqual([]);
    await second.resumeQueue('next');
    expect(await other.look(40)).toHaveLength(40);
  });

  it('R-RE9: a task that is refused at one server and at the other is known at both', async () => {
    const clock = new ManualClock(Date.now());
    const engines = await openTwo(clock);
    const [first] = engines;
    const queue = 'poisoned';
    await submitAll(first, drafts(60, { taskType: 'call', queue }));
    const workers = await Promise.all(
      engines.map((engine) => TestWorker.register(engine, { queues: [queue] })),
    );
    const { items } = await first.listTasks({ queue }, { limit: 100 });
    const poisoned = items.at(-1)?.taskId;
    let refusals = 0;
    await until('it to be a dead letter', async () => {
      for (const worker of workers) {
        for (const task of await worker.look(2)) {
          if (task.taskId === poisoned) {
            refusals += 1;
            await worker.fail(task, { code: 'RATE_LIMITED' });
          } else await worker.complete(task);
        }
      }
      workers.reverse();
      clock.advance(1_000);
      expect(await stateOf(first, queue)).toBe('closed');
      return (await first.listDeadLetters({ queue })).items.length > 0;
    });
    // A message between them may be late: then it is put off once more.
    expect(refusals).toBeGreaterThanOrEqual(7);
    expect(refusals).toBeLessThanOrEqual(10);
  });
});

describeOnPostgres('a circuit by the clocks of Postgres and of the ready queue', (server) => {
  for (const place of ['memory', 'Redis']) {
    it(`R-RE9: a poll that waits gets the probe by itself, and its answer counts (${place})`, async () => {
      const redisUrl = place === 'Redis' ? { redisUrl: inject('redisUrl') } : {};
      const engine = await server().open(redisUrl);
      await submitAll(engine, drafts(10, { taskType: 'call', queue: place }));
      const worker = await TestWorker.register(engine, { queues: [place] });
      const limited = { code: 'RATE_LIMITED', retryAfterSeconds: 1 };
      for (const task of await worker.take(3)) await worker.fail(task, limited);
      const [probe, ...others] = await worker.look(10, { waitMs: 20_000 });
      if (probe === undefined) throw new Error('it waited in vain');
      expect(others).toEqual([]);
      await worker.complete(probe);
      const { live } = await engine.getQueue(place);
      expect(live).toMatchObject({ circuit: 'half_open', pausedUntil: null, pausedWhy: null });
      await engine.cancelTasks({ queue: place });
    });
  }
});

describeOnPostgres('a circuit and what dies', (server) => {
  let redis: RunningRedis;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  it('R-RE9: after a restart it goes on as it was, open and recovering', async () => {
    const clock = new ManualClock(Date.now());
    const before = await open(server(), clock);
    const { workerId } = await broughtDown(before, 'restarted');
    await before.close();
    const after = await open(server(), clock);
    expect(await stateOf(after, 'restarted')).toBe('open');
    await goesOn(new TestWorker(after, workerId), clock);
    await after.close();
    const last = await open(server(), clock);
    expect(await stateOf(last, 'restarted')).toBe('half_open');
    expect(await new TestWorker(last, workerId).look(40)).toEqual([]);
    clock.advance(20_000);
    await until('it to be closed', async () => (await stateOf(last, 'restarted')) === 'closed');
    expect((await new TestWorker(last, workerId).take(20)).length).toBe(20);
  });

  it('R-RE9: what a server wrote and did not live to tell is told by another', async () => {
    const clock = new ManualClock(Date.now());
    const engine = await open(server(), clock, redis.url);
    const queue = 'untold';
    await submitAll(engine, drafts(100, { taskType: 'call', queue }));
    const worker = await TestWorker.register(engine, { queues: [queue] });
    await worker.take(1);
    await until('the queue to be written down', async () => (await engine.getQueue(queue)).name);
    await server().sql(
      `update sluice.queues set
         version = version + 1, changed_at = now(), circuit = 'open',
         circuit_reason = 'unavailable', circuit_until = $1, circuit_probes_at = $1,
         circuit_slots = 40
       where name = $2`,
      [new Date(clock.nowMs() + 30_000), queue],
    );
    await until('it to hold', async () => {
      const taken = await worker.look(1);
      await engine.release(worker.workerId, taken);
      return taken.length === 0;
    });
    clock.advance(30_000);
    await worker.completeAll(await worker.take(2));
    expect(await stateOf(engine, queue)).toBe('half_open');
  });

  it('R-RE9, R-RE7: after Redis was flushed it goes on as it was', async () => {
    const clock = new ManualClock(Date.now());
    const engine = await open(server(), clock, redis.url);
    const worker = await broughtDown(engine, 'flushed');
    await askRedis(redis.url, 'flushall');
    await until('the ready queue to be filled anew', async () => {
      const { live } = await engine.getQueue('flushed');
      return live.depth.medium === 60;
    });
    await goesOn(worker, clock);
  });
});
