import { afterEach, expect, it, vi, type MockSettledResult } from 'vitest';

import type { QueueLimit } from '../../src/domain/queue-settings.js';
import type { EngineContext } from '../../src/engine/context.js';
import { Engine } from '../../src/engine/engine.js';
import { TaskEvents } from '../../src/engine/events.js';
import { defaultEngineSettings, type EngineSettings } from '../../src/engine/settings.js';
import { MemoryReadyQueue } from '../../src/ready/memory/memory-ready-queue.js';
import type { ReadyQueue, TakeAnswer } from '../../src/ready/ready-queue.js';
import { AnswerBudget } from '../../src/engine/answer-budget.js';
import { LocalBus } from '../../src/runtime/bus.js';
import { systemClock } from '../../src/runtime/clock.js';
import { silentLog } from '../../src/runtime/log.js';
import { describeOnPostgres } from '../store/support.js';
import { until } from '../support/until.js';
import { drafts, quickTicks, submitAll, TestWorker, untilWaiting } from './support.js';

const lane = { taskType: 't', queue: 'q' };

describeOnPostgres('waiting polls', (postgres) => {
  const engines: Engine[] = [];

  async function open(
    settings: Partial<EngineSettings> = {},
  ): Promise<{ engine: Engine; ready: ReadyQueue }> {
    const ready: ReadyQueue = new MemoryReadyQueue({ clock: systemClock });
    const context: EngineContext = {
      db: await postgres().open(),
      ready,
      bus: new LocalBus(),
      closeLinks: () => ready.close(),
      mode: 'memory',
      answers: new AnswerBudget(),
      events: new TaskEvents(() => undefined),
      settings: { ...defaultEngineSettings, ...quickTicks, ...settings },
      log: silentLog,
      random: Math.random,
      clock: null,
    };
    const engine = new Engine(context, 'serve');
    await engine.begin();
    engines.push(engine);
    return { engine, ready };
  }

  afterEach(async () => {
    vi.restoreAllMocks();
    await Promise.all(engines.splice(0).map((engine) => engine.close()));
  });

  it('R-CH4: 200 polls that wait for a limit make one take for a token', async () => {
    const { engine, ready } = await open();
    const limits: QueueLimit[] = [{ unit: 'requests', rate: 50, perSeconds: 1, burst: null }];
    await engine.putQueue('q', { limits });
    await submitAll(engine, drafts(500, lane));
    const workers = await registerMany(engine, 200);
    const take = vi.spyOn(ready, 'take');
    const running = workers.map((worker) => work(engine, worker));
    const since = (call: number) => take.mock.settledResults.slice(call);
    await until('the fleet to be under way', () => grantsIn(since(0)) >= 20);
    const begun = take.mock.calls.length;
    await until('a hundred more', () => grantsIn(since(begun)) >= 100);
    const takes = since(begun);
    await stop(running);
    expect(takes.length / grantsIn(takes)).toBeLessThan(1.1);
  });

  it('R-CH4: an offer into a closed queue costs one look, not one for every poll', async () => {
    const { engine, ready } = await open();
    await engine.putQueue('q', { maxConcurrency: 1 });
    const workers = await registerMany(engine, 50);
    await submitAll(engine, drafts(1, lane));
    const [holder] = workers;
    const held = await holder?.takeOne();
    const take = vi.spyOn(ready, 'take');
    const others = workers.slice(1);
    const { polls: running } = await untilWaiting(
      () => others.map((worker) => work(engine, worker)),
      others.length,
    );
    take.mockClear();
    await engine.submit(lane);
    await pause(100);
    expect(take.mock.calls.length).toBeLessThan(5);
    // And the slot that falls free is used.
    if (held !== undefined) await holder?.complete(held);
    await until('the second to run', () => sum(running) === 1);
    await stop(running);
  });

  it('R-CH13: spread is even over workers', async () => {
    const shares = await trickle('spread', 40);
    for (const share of shares) expect(Math.abs(share - 10)).toBeLessThanOrEqual(2);
  });

  it('R-CH13: concentrate leaves the last ones idle', async () => {
    const shares = await trickle('concentrate', 40);
    expect(shares.at(0)).toBeGreaterThanOrEqual(36);
    expect(shares.at(-1)).toBe(0);
  });

  async function trickle(wakeOrder: EngineSettings['wakeOrder'], count: number): Promise<number[]> {
    const { engine } = await open({ wakeOrder });
    const workers = await registerMany(engine, 4);
    workers.sort((a, b) => (a.workerId < b.workerId ? -1 : 1));
    const running = workers.map((worker) => work(engine, worker));
    for (let n = 1; n <= count; n++) {
      await pause(5);
      await engine.submit(lane);
      await until('the task to be done', () => sum(running) === n);
    }
    await stop(running);
    return running.map(({ done }) => done);
  }

  it('R-RE7: polls wait while the ready queue is rebuilt, and one then looks for all', async () => {
    const { engine, ready } = await open();
    const workers = await registerMany(engine, 50);
    await engine.submit(lane);
    const take = vi.spyOn(ready, 'take');
    // Its contents are gone: the first who looks has them brought back.
    await ready.beginRestore(0);
    const beganMs = performance.now();
    const running = workers.map((worker) => work(engine, worker));
    await until('the task to be done', () => sum(running) === 1);
    // One of them asks every tenth of a second whether they are back.
    const asked = Math.ceil((performance.now() - beganMs) / 100);
    // All look that come before the first answer.
    expect(take.mock.calls.length).toBeLessThan(workers.length + 5 + asked);
    await stop(running);
  });

  it('a poll for nothing but news takes nothing', async () => {
    const { engine, ready } = await open();
    await engine.submit(lane);
    const worker = await TestWorker.register(engine);
    const take = vi.spyOn(ready, 'take');
    expect(await worker.look(0, { waitMs: 30 })).toEqual([]);
    expect(take).not.toHaveBeenCalled();
  });
});

interface Running {
  done: number;
  readonly leaving: AbortController;
  ended: Promise<void>;
}

/** Polls, completes and polls again. */
function work(engine: Engine, worker: TestWorker): Running {
  const running: Running = { done: 0, leaving: new AbortController(), ended: Promise.resolve() };
  const { signal } = running.leaving;
  const loop = async (): Promise<void> => {
    while (!signal.aborted) {
      const request = { availableCapacity: 1, waitMs: 10_000 };
      const { tasks } = await engine.poll(worker.workerId, request, signal);
      await worker.completeAll(tasks);
      running.done += tasks.length;
    }
  };
  running.ended = loop();
  // Heard of in `stop`.
  running.ended.catch(() => undefined);
  return running;
}

async function stop(running: readonly Running[]): Promise<void> {
  for (const { leaving } of running) leaving.abort();
  await Promise.all(running.map(({ ended }) => ended));
}

function sum(running: readonly Running[]): number {
  return running.reduce((done, one) => done + one.done, 0);
}

/** How many tasks they took. */
function grantsIn(takes: readonly MockSettledResult<TakeAnswer>[]): number {
  return takes.reduce((grants, { type, value }) => {
    return type === 'fulfilled' && value.kind === 'taken' ? grants + value.entries.length : grants;
  }, 0);
}

function registerMany(engine: Engine, count: number): Promise<TestWorker[]> {
  return Promise.all(Array.from({ length: count }, () => TestWorker.register(engine)));
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
