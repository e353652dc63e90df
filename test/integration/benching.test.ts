import { describe, expect, inject, it } from 'vitest';

import type { Engine } from '../../src/engine/open-engine.js';
import type { ClaimedTask, WorkerView } from '../../src/protocol/workers-api.js';
import { staysWithin } from '../support/stays-within.js';
import { until } from '../support/until.js';
import {
  describeOnEveryEngine,
  describeOnPostgres,
  drafts,
  freshQueue,
  submitAll,
  TestWorker,
  type EngineUnderTest,
} from './support.js';

const taskType = 'call';
const minuteMs = 60_000;
/** A poll looks again by itself after five seconds. */
const soonerThanALookMs = 4_000;

interface Scene {
  readonly queue: string;
  readonly broken: TestWorker;
  readonly healthy: TestWorker;
}

async function prepare(engine: Engine, tasks: number): Promise<Scene> {
  const queue = freshQueue();
  const broken = await TestWorker.register(engine, { queues: [queue] });
  const healthy = await TestWorker.register(engine, { queues: [queue] });
  await submitAll(engine, drafts(tasks, { taskType, queue }));
  return { queue, broken, healthy };
}

/** The oldest ones need a GPU, which one of the two has. */
async function prepareGpu(engine: Engine): Promise<Scene> {
  const queue = freshQueue();
  const capabilities = ['gpu'];
  const broken = await TestWorker.register(engine, { queues: [queue], capabilities });
  const healthy = await TestWorker.register(engine, { queues: [queue] });
  await submitAll(engine, drafts(10, { taskType, queue, requiredCapabilities: capabilities }));
  await submitAll(engine, drafts(1, { taskType, queue }));
  return { queue, broken, healthy };
}

async function failOneByOne(worker: TestWorker, times: number): Promise<void> {
  for (let time = 0; time < times; time++) await worker.fail(await worker.takeOne());
}

async function succeed(worker: TestWorker): Promise<void> {
  await worker.complete(await worker.takeOne());
}

/** How long it takes a poll that waits to get what is submitted. */
async function wake(engine: Engine, queue: string, worker: TestWorker): Promise<number> {
  const waiting = worker.look(1, { waitMs: 60_000 });
  const beganMs = performance.now();
  await submitAll(engine, drafts(1, { taskType, queue }));
  expect(await waiting).toHaveLength(1);
  return performance.now() - beganMs;
}

async function failAtOnce(worker: TestWorker, tasks: readonly ClaimedTask[]): Promise<void> {
  await Promise.all(tasks.map((task) => worker.fail(task, { code: 'TIMEOUT' })));
}

/** So often in a row, and the other one succeeds meanwhile. */
async function failBeside({ broken, healthy }: Scene, times: number): Promise<void> {
  await failOneByOne(broken, 1);
  await succeed(healthy);
  await failOneByOne(broken, times - 1);
}

async function benched(engine: Engine, tasks = 40): Promise<Scene> {
  const scene = await prepare(engine, tasks);
  await failBeside(scene, 5);
  expect(await scene.broken.look()).toEqual([]);
  return scene;
}

function viewOf({ engine }: EngineUnderTest, { workerId }: TestWorker): Promise<WorkerView> {
  return engine.getWorker(workerId);
}

describeOnEveryEngine('a worker that fails while others succeed', (under) => {
  it('R-RE11: five failures in a row bench it; the others go on', async () => {
    const { engine, clock } = under();
    const scene = await prepare(engine, 40);
    const { queue, broken, healthy } = scene;
    await failBeside(scene, 4);
    expect(await viewOf(under(), broken)).toMatchObject({ benchedUntil: null });
    await failOneByOne(broken, 1);
    expect(await broken.look(10)).toEqual([]);
    const { benchedUntil } = await viewOf(under(), broken);
    expect(benchedUntil?.getTime()).toBe(clock.nowMs() + minuteMs);
    await healthy.completeAll(await healthy.take(10));
    clock.advance(minuteMs - 1);
    expect(await broken.look(10)).toEqual([]);
    await engine.cancelTasks({ queue });
  });

  it('R-RE11: who breaks all it touches does not drain the queue into the dead letters', async () => {
    const { engine } = under();
    const { queue, broken, healthy } = await prepare(engine, 0);
    await submitAll(engine, drafts(60, { taskType, queue, maxRetries: 0 }));
    await succeed(healthy);
    let ended = 1;
    while (ended < 60) {
      const [spoiled] = await broken.look(1);
      if (spoiled !== undefined) await broken.fail(spoiled);
      const [done] = await healthy.look(1);
      if (done !== undefined) await healthy.complete(done);
      ended += (spoiled === undefined ? 0 : 1) + (done === undefined ? 0 : 1);
    }
    const { items } = await engine.listDeadLetters({ queue });
    expect(items).toHaveLength(5);
  });

  it('R-RE11: after a minute it gets three probes at once; one that succeeds clears it', async () => {
    const { engine, clock } = under();
    const { queue, broken } = await benched(engine);
    clock.advance(minuteMs);
    const probes = await broken.look(10);
    expect(probes).toHaveLength(3);
    expect(await broken.look(10)).toEqual([]);
    const [first, ...others] = probes;
    if (first === undefined) throw new Error('three were taken');
    await broken.fail(first);
    expect(await broken.look(10)).toHaveLength(1);
    await broken.completeAll(others);
    expect(await viewOf(under(), broken)).toMatchObject({ benchedUntil: null });
    expect(await broken.look(10)).toHaveLength(10);
    await engine.cancelTasks({ queue });
  });

  it('R-RE11: three probes that fail bench it again', async () => {
    const { engine, clock } = under();
    const { queue, broken, healthy } = await benched(engine);
    clock.advance(minuteMs);
    const [first, ...others] = await broken.look(3);
    if (first === undefined) throw new Error('three were taken');
    await broken.fail(first);
    await succeed(healthy);
    for (const probe of others) await broken.fail(probe);
    expect(await broken.look(10)).toEqual([]);
    expect((await viewOf(under(), broken)).benchedUntil?.getTime()).toBe(clock.nowMs() + minuteMs);
    await succeed(healthy);
    clock.advance(minuteMs);
    expect(await broken.look(10)).toHaveLength(3);
    await engine.cancelTasks({ queue });
  });

  it('R-RE11: a poll that waits gets another probe as soon as one has ended', async () => {
    const { engine, clock } = under();
    const { queue, broken } = await benched(engine);
    clock.advance(minuteMs);
    const [failed, released, cancelled] = await broken.look(10);
    if (failed === undefined || released === undefined || cancelled === undefined) {
      throw new Error('three were taken');
    }
    const ends = [() => broken.fail(failed), () => engine.release(broken.workerId, [released])];
    for (const end of ends) {
      expect(await broken.look(10)).toEqual([]);
      const waits = broken.look(10, { waitMs: 20_000 });
      await end();
      expect(await waits).toHaveLength(1);
    }
    expect(await broken.look(10)).toEqual([]);
    await engine.cancelTask(cancelled.taskId);
    // The first answer is the news.
    expect(await broken.look(10)).toEqual([]);
    expect(await broken.look(10)).toHaveLength(1);
    await engine.cancelTasks({ queue });
  });

  it('R-RE11: probes whose end nobody hears of do not keep it out for ever', async () => {
    const { engine, clock } = under();
    const { queue, broken } = await benched(engine);
    clock.advance(minuteMs);
    expect(await broken.look(10)).toHaveLength(3);
    clock.advance(minuteMs);
    expect(await broken.look(10)).toHaveLength(3);
    await engine.cancelTasks({ queue });
  });

  it('R-RE11: two polls of one worker get three probes together', async () => {
    const { engine, clock } = under();
    const { queue, broken } = await benched(engine);
    clock.advance(minuteMs);
    const answers = await Promise.all([broken.look(2), broken.look(2), broken.look(2)]);
    expect(answers.flat()).toHaveLength(3);
    await engine.cancelTasks({ queue });
  });

  it('R-RE11: a worker that is alone is never benched, nor are all when the service is down', async () => {
    const { engine } = under();
    const { queue, broken, healthy } = await prepare(engine, 40);
    await failOneByOne(broken, 10);
    expect(await broken.look()).toHaveLength(1);
    // Another one succeeded, until the service went down for it as well.
    await succeed(healthy);
    await failOneByOne(healthy, 1);
    await failOneByOne(broken, 6);
    await failOneByOne(healthy, 6);
    for (const worker of [broken, healthy]) {
      expect(await viewOf(under(), worker)).toMatchObject({ benchedUntil: null });
    }
    await engine.cancelTasks({ queue });
  });

  it('R-RE11: an outage benches nobody, however many one of them fails before the others', async () => {
    const { engine } = under();
    const { queue, broken, healthy } = await prepare(engine, 44);
    const more = [1, 2].map(() => TestWorker.register(engine, { queues: [queue] }));
    const workers = [broken, healthy, ...(await Promise.all(more))];
    for (const worker of workers) await succeed(worker);
    for (const worker of workers) await failAtOnce(worker, await worker.take(10));
    for (const worker of workers) {
      expect(await viewOf(under(), worker)).toMatchObject({ benchedUntil: null });
    }
    await engine.cancelTasks({ queue });
  });

  it('R-RE11: who fails on when the others succeed again is benched, whatever came before', async () => {
    const { engine } = under();
    const { queue, broken, healthy } = await prepare(engine, 40);
    await succeed(healthy);
    await failAtOnce(broken, await broken.take(10));
    expect(await viewOf(under(), broken)).toMatchObject({ benchedUntil: null });
    await succeed(healthy);
    await failOneByOne(broken, 1);
    expect(await broken.look()).toEqual([]);
    expect(await healthy.look(10)).toHaveLength(10);
    await engine.cancelTasks({ queue });
  });

  it('R-RE11: what began in an outage and fails after it benches nobody', async () => {
    const { engine, clock } = under();
    const { queue, broken, healthy } = await prepare(engine, 40);
    const [straggler, ...others] = await broken.take(7);
    if (straggler === undefined) throw new Error('seven were taken');
    await failAtOnce(broken, others);
    await failOneByOne(healthy, 1);
    clock.advance(1_000);
    await succeed(healthy);
    await broken.fail(straggler, { code: 'TIMEOUT' });
    expect(await viewOf(under(), broken)).toMatchObject({ benchedUntil: null });
    await failOneByOne(broken, 1);
    expect(await viewOf(under(), broken)).not.toMatchObject({ benchedUntil: null });
    await engine.cancelTasks({ queue });
  });

  it('R-RE11: a worker is not benched by what its predecessor did before it was killed', async () => {
    const { engine } = under();
    const { queue, broken: successor, healthy: predecessor } = await prepare(engine, 20);
    await succeed(predecessor);
    // Killed: it says no goodbye, and is not declared dead yet.
    await failOneByOne(successor, 8);
    expect(await successor.look()).toHaveLength(1);
    await engine.cancelTasks({ queue });
  });

  it('R-RE11: who has left does not show that the work can be done', async () => {
    const { engine } = under();
    const { queue, broken, healthy } = await prepare(engine, 20);
    await failOneByOne(broken, 1);
    await succeed(healthy);
    await engine.deregister(healthy.workerId);
    await failOneByOne(broken, 8);
    expect(await broken.look()).toHaveLength(1);
    await engine.cancelTasks({ queue });
  });

  it('R-RE11: the fault of a task, or a service that says "slow down", is not the worker’s', async () => {
    const { engine } = under();
    const { queue, broken, healthy } = await prepare(engine, 40);
    for (const error of [
      { code: 'INVALID_INPUT' },
      { code: 'NOT_FOUND', retriable: false },
      { code: 'RATE_LIMITED', retryAfterSeconds: 0 },
      { code: 'FORBIDDEN' },
    ]) {
      for (let time = 0; time < 5; time++) {
        await broken.fail(await broken.takeOne(), error);
        await succeed(healthy);
      }
    }
    expect(await viewOf(under(), broken)).toMatchObject({ benchedUntil: null });
    await engine.cancelTasks({ queue });
  });

  it('R-RE11: success at another kind of task is no evidence; a success of its own begins anew', async () => {
    const { engine } = under();
    const scene = await prepare(engine, 40);
    const { queue, broken, healthy } = scene;
    const other = freshQueue();
    await submitAll(engine, drafts(1, { taskType, queue: other }));
    await failOneByOne(broken, 1);
    await healthy.complete(await healthy.takeOne({ queues: [other] }));
    await failOneByOne(broken, 5);
    await succeed(broken);
    await failBeside(scene, 4);
    await succeed(broken);
    await failBeside(scene, 4);
    expect(await viewOf(under(), broken)).toMatchObject({ benchedUntil: null });
    await engine.cancelTasks({ queue });
  });

  it('R-RE11: who succeeds at what needs less does not show that it can be done', async () => {
    const { engine } = under();
    const { queue, broken: withGpu, healthy: without } = await prepareGpu(engine);
    await withGpu.fail(await withGpu.takeOne());
    await succeed(without);
    for (let time = 0; time < 4; time++) await withGpu.fail(await withGpu.takeOne());
    expect(await viewOf(under(), withGpu)).toMatchObject({ benchedUntil: null });
    const another = await TestWorker.register(engine, { queues: [queue], capabilities: ['gpu'] });
    await succeed(another);
    await withGpu.fail(await withGpu.takeOne());
    expect(await viewOf(under(), withGpu)).not.toMatchObject({ benchedUntil: null });
    await engine.cancelTasks({ queue });
  });

  it('R-RE11: a benched worker takes no wake-up from others, and still hears news', async () => {
    const { engine } = under();
    const { queue, broken, healthy } = await benched(engine, 7);
    const held = await healthy.takeOne();
    expect(await healthy.look()).toEqual([]);
    // The benched one waits longest and is the least loaded: it would be woken first.
    const waits = engine.poll(broken.workerId, { availableCapacity: 1_000, waitMs: 100_000 });
    expect(await staysWithin(soonerThanALookMs, () => wake(engine, queue, healthy))).toBe(true);
    await engine.drainWorker(broken.workerId);
    expect(await waits).toMatchObject({ tasks: [], drain: true });
    await healthy.complete(held);
    await engine.cancelTasks({ queue });
  });

  it('R-RE11: a worker that waits for work when it is benched lets go of it', async () => {
    const { engine } = under();
    const { queue, broken, healthy } = await prepare(engine, 6);
    const [first, ...held] = await broken.take(5);
    if (first === undefined) throw new Error('five were taken');
    await broken.fail(first);
    await succeed(healthy);
    const waits = broken.look(1, { waitMs: 100_000 });
    for (const task of held) await broken.fail(task);
    await until('the worker to be benched', async () => {
      const { benchedUntil } = await viewOf(under(), broken);
      return benchedUntil === null ? null : true;
    });
    expect(await staysWithin(soonerThanALookMs, () => wake(engine, queue, healthy))).toBe(true);
    await engine.drainWorker(broken.workerId);
    expect(await waits).toEqual([]);
    await engine.cancelTasks({ queue });
  });

  it('R-RE11: explain does not count a benched worker as free', async () => {
    const { engine, clock } = under();
    const { queue, healthy } = await benched(engine, 6);
    const [taskId] = await submitAll(engine, drafts(1, { taskType, queue }));
    if (taskId === undefined) throw new Error('one was submitted');
    await engine.heartbeat(healthy.workerId, { currentLoad: 1_000, status: 'active' });
    const busy = await engine.explainTask(taskId);
    expect(busy.reasons.find(({ kind }) => kind === 'workers_busy')?.detail).toContain('1 more');
    await engine.deregister(healthy.workerId);
    const { reasons } = await engine.explainTask(taskId);
    const until = new Date(clock.nowMs() + minuteMs);
    expect(reasons.find(({ kind }) => kind === 'workers_busy')).toMatchObject({ until });
    clock.advance(minuteMs);
    const after = await engine.explainTask(taskId);
    expect(after.reasons.map(({ kind }) => kind)).not.toContain('workers_busy');
    await engine.cancelTasks({ queue });
  });
});

describe('benched, as time passes', () => {
  describeOnPostgres('one server', (server) => {
    it('R-RE11: a poll that waits gets its probes when the time is over', async () => {
      const engine = await server().open({ settings: { benchMs: 2_000 } });
      const scene = await prepare(engine, 40);
      const { broken } = scene;
      await failBeside(scene, 5);
      expect(await broken.look(10, { waitMs: 30_000 })).toHaveLength(3);
    });

    it('R-RE11: who succeeds is still believed when somebody else benched the accused', async () => {
      const engine = await server().open();
      const { queue, broken, healthy } = await prepare(engine, 40);
      const alsoBroken = await TestWorker.register(engine, { queues: [queue] });
      await succeed(healthy);
      const [first, ...others] = await broken.take(5);
      if (first === undefined) throw new Error('five were taken');
      await broken.fail(first);
      await failOneByOne(alsoBroken, 1);
      await succeed(healthy);
      const text = `update sluice.workers set benched_until = now() + interval '1 minute' where id = $1`;
      await server().sql(text, [broken.workerId]);
      for (const task of others) await broken.fail(task);
      await failOneByOne(alsoBroken, 4);
      expect(await engine.getWorker(alsoBroken.workerId)).not.toMatchObject({ benchedUntil: null });
    });

    it('R-RE11: a server that is started again knows who is benched', async () => {
      const first = await server().open();
      const { broken } = await benched(first);
      await first.close();
      const second = await server().open();
      expect(await new TestWorker(second, broken.workerId).look(10)).toEqual([]);
    });
  });

  describeOnPostgres('two servers', (server) => {
    const open = () => server().open({ redisUrl: inject('redisUrl') });

    it('R-RE11: benched at one server, it gets nothing at the other, until it succeeds', async () => {
      const first = await open();
      const second = await open();
      const { broken } = await prepare(first, 40);
      const [good, early] = await broken.take(2);
      if (good === undefined || early === undefined) throw new Error('two were taken');
      await broken.fail(early);
      const elsewhere = new TestWorker(second, broken.workerId);
      // The healthy one reports to the other server, so that each knows half of it.
      const healthy = await TestWorker.register(second);
      await succeed(healthy);
      await failOneByOne(broken, 4);
      await until('the other server to bench it', async () => {
        const { benchedUntil } = await first.getWorker(broken.workerId);
        return benchedUntil === null ? null : true;
      });
      const lookAtBoth = async () => {
        const taken = [await broken.look(), await elsewhere.look()];
        // There is as much for the next time.
        await first.release(broken.workerId, taken.flat());
        return taken.map(({ length }) => length);
      };
      await until('both servers to know', async () => {
        return (await lookAtBoth()).every((count) => count === 0);
      });
      await elsewhere.complete(good);
      await until('both servers to trust it', async () => {
        return (await lookAtBoth()).every((count) => count === 1);
      });
    });
  });
});
