import { expect, it, onTestFinished, vi } from 'vitest';

import type { AttemptError } from '../../src/domain/attempt-error.js';
import type { TaskId } from '../../src/domain/ids.js';
import { PushbackLedger } from '../../src/engine/pushback-ledger.js';
import type { Engine } from '../../src/engine/open-engine.js';
import type { QueueDraft } from '../../src/protocol/queues-api.js';
import type { ClaimedTask } from '../../src/protocol/workers-api.js';
import { until } from '../support/until.js';
import {
  broken,
  describeOnEveryEngine,
  drafts,
  freshQueue,
  refusal,
  submitAll,
  TestWorker,
  type EngineUnderTest,
} from './support.js';

const secondMs = 1_000;
const minuteMs = 60_000;
const taskType = 'call';
const unavailable: AttemptError = { ...broken, code: 'UNAVAILABLE', message: '503' };
const limited: AttemptError = { ...broken, code: 'RATE_LIMITED', message: '429' };
const denied: AttemptError = { ...broken, code: 'UNAUTHORIZED', message: '401' };
const noQuota: AttemptError = { ...broken, code: 'QUOTA_EXHAUSTED', message: '429' };

/** Limits that nobody reaches: with them, estimates go by what is known and not by the last minute. */
const ample: QueueDraft = {
  limits: [{ unit: 'requests', rate: 1_000, perSeconds: 1, burst: 1_000 }],
};

interface Scene {
  readonly queue: string;
  readonly worker: TestWorker;
}

async function prepare(engine: Engine, tasks: number, change: QueueDraft = {}): Promise<Scene> {
  const queue = freshQueue();
  await engine.putQueue(queue, change);
  const worker = await TestWorker.register(engine, { queues: [queue] });
  await submitAll(engine, drafts(tasks, { taskType, queue }));
  return { queue, worker };
}

/** In one call, as they come when a service goes down under all of them. */
async function failAll(
  engine: Engine,
  { worker }: Scene,
  tasks: readonly ClaimedTask[],
  error: AttemptError,
): Promise<void> {
  const reports = tasks.map(({ taskId, lease }) => {
    return { taskId, lease, status: 'failed', error } as const;
  });
  await engine.report(worker.workerId, reports);
}

async function broughtDown(engine: Engine, tasks = 40, change: QueueDraft = {}): Promise<Scene> {
  const scene = await prepare(engine, tasks, change);
  await failAll(engine, scene, await scene.worker.take(5), unavailable);
  expect(await stateOf(engine, scene)).toBe('open');
  return scene;
}

async function stateOf(engine: Engine, { queue }: Scene): Promise<string> {
  return (await engine.getQueue(queue)).live.circuit;
}

function untilState(engine: Engine, scene: Scene, state: string): Promise<unknown> {
  return until(`the circuit to be ${state}`, async () => (await stateOf(engine, scene)) === state);
}

describeOnEveryEngine('a service that answers 429', (under) => {
  for (const retryAfterSeconds of [undefined, 1, 20]) {
    const named = retryAfterSeconds === undefined ? 'none' : `${String(retryAfterSeconds)} s`;
    it(`R-RE9: to everything for a minute costs ten calls more than were in flight (retry after: ${named})`, async () => {
      const { engine, clock } = under();
      const scene = await prepare(engine, 100);
      const { queue, worker } = scene;
      const error = retryAfterSeconds === undefined ? limited : { ...limited, retryAfterSeconds };
      const inFlight = await worker.take(40);
      await Promise.all(inFlight.map((task) => worker.fail(task, error)));
      let calls = 0;
      for (let second = 0; second < 60; second += 1) {
        clock.advance(secondMs);
        const called = await worker.look(40);
        calls += called.length;
        await failAll(engine, scene, called, error);
      }
      expect(calls).toBeGreaterThanOrEqual(2);
      expect(calls).toBeLessThanOrEqual(10);
      const { items } = await engine.listTasks({ queue }, { limit: 200 });
      expect(items).toHaveLength(100);
      for (const { retryCount, status } of items) {
        expect({ retryCount, ended: status === 'dead_letter' }).toEqual({
          retryCount: 0,
          ended: false,
        });
      }
      await engine.cancelTasks({ queue });
    });
  }

  it('R-RE9: writes down what the service said and what became of it', async () => {
    const { engine, clock } = under();
    const scene = await prepare(engine, 6, ample);
    const { queue, worker } = scene;
    const said = { ...limited, retryAfterSeconds: 30, message: `no\0w ${'x'.repeat(600)}` };
    const [first, ...others] = await worker.take(4);
    if (first === undefined) throw new Error('no task came');
    await worker.fail(first, said);
    const rows = (count: number) =>
      until(`${count} rows of the ledger`, async () => {
        const { items } = await engine.listPushbacks(queue);
        return items.length === count ? items : null;
      });
    const [single] = await rows(1);
    expect(single).toMatchObject({
      queue,
      taskId: first.taskId,
      taskType,
      workerId: worker.workerId,
      code: 'RATE_LIMITED',
      message: `no\ufffdw ${'x'.repeat(495)}`,
      retryAfterMs: 30_000,
      answers: 1,
      became: 'goes_on',
      until: null,
    });
    clock.advance(5_000);
    await failAll(engine, scene, others, { ...unavailable, ...limited, retryAfterSeconds: 30 });
    const [latest] = await rows(2);
    expect(latest).toMatchObject({
      message: '429',
      answers: 3,
      became: 'stopped',
      until: new Date(clock.nowMs() + 30_000),
    });
    expect(await refusal(engine.listPushbacks('no-such-queue'))).toBe('queue_not_found');
    await engine.cancelTasks({ queue });
  });

  it('R-RE9: a report does not fail when the ledger cannot be written', async () => {
    const { engine } = under();
    const scene = await prepare(engine, 1);
    const noted = vi.spyOn(PushbackLedger.prototype, 'flush').mockRejectedValue(new Error('full'));
    onTestFinished(() => noted.mockRestore());
    const task = await scene.worker.takeOne();
    expect(await scene.worker.fail(task, limited)).toMatchObject({ accepted: true });
    await until('the ledger to be written', () => noted.mock.calls.length > 0);
    await engine.cancelTasks({ queue: scene.queue });
  });

  it('R-RE9, R-OB5: pauses the queue until the time it names, and says so', async () => {
    const { engine, clock } = under();
    const scene = await prepare(engine, 5, ample);
    const { queue, worker } = scene;
    const error = { ...limited, retryAfterSeconds: 30 };
    await failAll(engine, scene, await worker.take(2), error);
    expect(await stateOf(engine, scene)).toBe('closed');
    await worker.fail(await worker.takeOne(), error);
    const ends = new Date(clock.nowMs() + 30_000);
    expect((await engine.getQueue(queue)).live).toMatchObject({
      circuit: 'open',
      pausedUntil: ends,
      pausedWhy: 'its service says that it gets too many requests',
    });
    const receipt = await engine.submit({ taskType, queue });
    expect(receipt.estimatedWaitSeconds).toBe(30);
    const { reasons } = await engine.explainTask(receipt.taskId);
    expect(reasons[0]).toEqual({
      kind: 'paused',
      detail: `Queue ${queue} is paused: its service says that it gets too many requests.`,
      until: ends,
    });
    clock.advance(29_999);
    expect(await worker.look(10)).toEqual([]);
    clock.advance(1);
    expect(await worker.take(1)).toHaveLength(1);
    expect(await worker.look(10)).toEqual([]);
    await engine.cancelTasks({ queue });
  });

  it('R-RE9: a straggler that names a later time moves the end out', async () => {
    const { engine, clock } = under();
    const scene = await prepare(engine, 6);
    const { queue, worker } = scene;
    const [straggler, ...others] = await worker.take(4);
    if (straggler === undefined) throw new Error('four were taken');
    await failAll(engine, scene, others, { ...limited, retryAfterSeconds: 10 });
    clock.advance(5_000);
    await worker.fail(straggler, { ...limited, retryAfterSeconds: 3_600 });
    clock.advance(3_599_999);
    expect(await worker.look(10)).toEqual([]);
    clock.advance(1);
    expect(await worker.take(1)).toHaveLength(1);
    await engine.cancelTasks({ queue });
  });
});

describeOnEveryEngine('a task that its service refuses every time', (under) => {
  /** Answers how often a task was refused until it was a dead letter, whenever it is due. */
  async function refusedUntilDead(
    { engine, clock }: EngineUnderTest,
    { worker }: Scene,
    taskId: TaskId,
    error: AttemptError,
  ): Promise<number> {
    for (let times = 0; times < 200; times += 1) {
      const { status, runAt } = await engine.getTask(taskId);
      if (status === 'dead_letter') return times;
      clock.advance(Math.max(0, (runAt?.getTime() ?? 0) - clock.nowMs()));
      await worker.fail(await worker.takeOne(), error);
    }
    throw new Error('it never ended');
  }

  const poisons = [limited, { ...limited, retryAfterSeconds: 20 }, noQuota];
  it.each(poisons)(
    'R-RE9: one of 120 costs its own retries and stops nothing: %j',
    async (error) => {
      const { engine } = under();
      const scene = await prepare(engine, 120);
      const { queue, worker } = scene;
      const { version } = await engine.getQueue(queue);
      const { taskId, lease } = await worker.takeOne();
      await worker.fail({ taskId, lease }, error);
      await worker.completeAll(await worker.take(119));
      // Three times at no cost, then a first attempt that counts, and three retries.
      expect(1 + (await refusedUntilDead(under(), scene, taskId, error))).toBe(3 + 1 + 3);
      expect((await engine.listDeadLetters({ queue })).items).toMatchObject([
        { retryCount: 3, error: { code: error.code } },
      ]);
      // Whatever a circuit does is a version of its queue.
      expect((await engine.getQueue(queue)).version).toBe(version);
    },
  );

  it('R-RE9: ends as well when it is the last of its queue, after five minutes', async () => {
    const { engine, clock } = under();
    const scene = await prepare(engine, 4);
    await scene.worker.completeAll(await scene.worker.take(4));
    const { taskId } = await engine.submit({ taskType, queue: scene.queue });
    const begunMs = clock.nowMs();
    expect(await refusedUntilDead(under(), scene, taskId, limited)).toBe(10 + 1 + 3);
    expect(clock.nowMs() - begunMs).toBeLessThan(10 * minuteMs);
  });

  it('R-RE9: ends also as the only task that its queue ever had', async () => {
    const { engine } = under();
    const scene = await prepare(engine, 0);
    const { taskId } = await engine.submit({ taskType, queue: scene.queue });
    // A hundred times at no cost: it may be the service.
    expect(await refusedUntilDead(under(), scene, taskId, limited)).toBe(100 + 1 + 3);
  });

  it('R-RE9, R-OB5: an account without quota stops its queue, says so, and costs nothing', async () => {
    const { engine, clock } = under();
    const scene = await prepare(engine, 20);
    const { queue, worker } = scene;
    await failAll(engine, scene, await worker.take(10), noQuota);
    const pausedWhy = 'the account at its service has no quota left';
    expect((await engine.getQueue(queue)).live).toMatchObject({ circuit: 'open', pausedWhy });
    const { items } = await engine.listTasks({ queue }, { limit: 100 });
    expect(items.every(({ retryCount }) => retryCount === 0)).toBe(true);
    clock.advance(30_000);
    await failAll(engine, scene, await worker.take(1), noQuota);
    clock.advance(60_000);
    await worker.completeAll(await worker.take(1));
    expect(await stateOf(engine, scene)).toBe('half_open');
    await engine.cancelTasks({ queue });
  });

  it('R-RE9, R-OB5: a key that is refused stops its queue at the first, which alone ends', async () => {
    const { engine, clock } = under();
    const scene = await prepare(engine, 100);
    const { queue, worker } = scene;
    await failAll(engine, scene, await worker.take(40), denied);
    const until = new Date(clock.nowMs() + 30_000);
    expect((await engine.getQueue(queue)).live).toMatchObject({
      circuit: 'open',
      pausedUntil: until,
      pausedWhy: 'its service refuses the API key (401)',
    });
    const { taskId } = await engine.submit({ taskType, queue });
    expect((await engine.explainTask(taskId)).reasons[0]).toEqual({
      kind: 'circuit_open',
      detail: `The circuit of queue ${queue} is open: its service refuses the API key (401).`,
      until,
    });
    expect((await engine.listDeadLetters({ queue })).items).toMatchObject([
      { attempt: 1, error: { code: 'UNAUTHORIZED' } },
    ]);
    for (const seconds of [30, 60, 120]) {
      clock.advance(seconds * secondMs);
      await failAll(engine, scene, await worker.take(1), denied);
    }
    expect((await engine.listDeadLetters({ queue })).items).toHaveLength(1);
    // The key is right again, and somebody knows.
    await engine.resumeQueue(queue);
    expect(await worker.look(40)).not.toEqual([]);
    await engine.cancelTasks({ queue });
  });

  it('R-RE9: a 401 or 403 of one task while others are answered ends that task, and stops nothing', async () => {
    const { engine } = under();
    const scene = await prepare(engine, 40);
    const { queue, worker } = scene;
    for (const code of ['UNAUTHORIZED', 'FORBIDDEN', 'UNAUTHORIZED', 'FORBIDDEN']) {
      await worker.complete(await worker.takeOne());
      await worker.fail(await worker.takeOne(), { ...denied, code });
      expect(await stateOf(engine, scene)).toBe('closed');
    }
    expect((await engine.listDeadLetters({ queue })).items).toHaveLength(4);
    await worker.complete(await worker.takeOne());
    const forbidden = { ...denied, code: 'FORBIDDEN' };
    await failAll(engine, scene, await worker.take(9), forbidden);
    expect(await stateOf(engine, scene)).toBe('closed');
    await worker.fail(await worker.takeOne(), forbidden);
    expect((await engine.getQueue(queue)).live).toMatchObject({
      circuit: 'open',
      pausedWhy: 'its service forbids what the API key asks for (403)',
    });
    await engine.cancelTasks({ queue });
  });
});

describeOnEveryEngine('a service that is down', (under) => {
  it('R-RE9: for a minute wastes no more than ten calls, and all is done in the end', async () => {
    const { on, engine, clock } = under();
    // A thousand where most is at work; the others get as far with fewer.
    const all = on === 'Redis' ? 1_000 : 300;
    const scene = await prepare(engine, all, { maxConcurrency: 40 });
    const { queue, worker } = scene;
    const upAtMs = clock.nowMs() + minuteMs;
    const callMs = 2_000;
    let running: { readonly task: ClaimedTask; readonly endsMs: number }[] = [];
    let wasted = 0;
    let completed = 0;
    await until('all to be completed', async () => {
      const called = await worker.look(40 - running.length);
      running.push(...called.map((task) => ({ task, endsMs: clock.nowMs() + callMs })));
      clock.advance(secondMs);
      const nowMs = clock.nowMs();
      const over = running.filter(({ endsMs }) => endsMs <= nowMs).map(({ task }) => task);
      running = running.filter(({ endsMs }) => endsMs > nowMs);
      if (nowMs < upAtMs) {
        wasted += over.length;
        // One by one, as a worker reports them.
        await Promise.all(over.map((task) => worker.fail(task, unavailable)));
      } else {
        completed += over.length;
        await worker.completeAll(over);
      }
      return completed === all;
    });
    expect(wasted).toBeGreaterThanOrEqual(40);
    expect(wasted).toBeLessThanOrEqual(50);
    expect((await engine.listDeadLetters({ queue })).items).toEqual([]);
    const { items } = await engine.listTasks({ queue, status: 'completed' }, { limit: 1_000 });
    const retries = items.reduce((sum, { retryCount }) => sum + retryCount, 0);
    expect(retries).toBeLessThanOrEqual(4);
  });

  it('R-RE9: the first four cost a retry, what comes after costs none', async () => {
    const { engine } = under();
    const scene = await prepare(engine, 40);
    const { queue, worker } = scene;
    const taken = await worker.take(40);
    await failAll(engine, scene, taken, unavailable);
    const tasks = await Promise.all(
      taken.map(({ taskId }) => engine.getTask(taskId, { history: true })),
    );
    expect(tasks.reduce((sum, { retryCount }) => sum + retryCount, 0)).toBe(4);
    const outcomes = tasks.flatMap(({ history }) => history?.attempts.map((one) => one.outcome));
    expect(outcomes.filter((outcome) => outcome === 'deferred')).toHaveLength(36);
    await engine.cancelTasks({ queue });
  });

  it('R-RE9: an answer in between, good or bad, starts the count anew', async () => {
    const { engine } = under();
    const scene = await prepare(engine, 40);
    const { queue, worker } = scene;
    for (const isGood of [true, false]) {
      await failAll(engine, scene, await worker.take(4), unavailable);
      const task = await worker.takeOne();
      await (isGood ? worker.complete(task) : worker.fail(task));
    }
    await failAll(engine, scene, await worker.take(4), unavailable);
    expect(await stateOf(engine, scene)).toBe('closed');
    await engine.cancelTasks({ queue });
  });

  it('R-RE9, R-OB5: is shown with its reason and until when', async () => {
    const { engine, clock } = under();
    const { queue, worker } = await broughtDown(engine, 40, ample);
    const ends = new Date(clock.nowMs() + 30_000);
    const view = await engine.getQueue(queue);
    expect(view.settings.paused).toBe(false);
    expect(view.live).toMatchObject({
      circuit: 'open',
      pausedUntil: ends,
      pausedWhy: 'its service is not available',
    });
    const { taskId, estimatedWaitSeconds } = await engine.submit({ taskType, queue });
    expect(estimatedWaitSeconds).toBe(30);
    const reasonNow = async () => (await engine.explainTask(taskId)).reasons[0];
    const detail = `The circuit of queue ${queue} is open: its service is not available`;
    expect(await reasonNow()).toEqual({ kind: 'circuit_open', detail: `${detail}.`, until: ends });
    clock.advance(30_000);
    await worker.take(2);
    expect(await reasonNow()).toEqual({
      kind: 'circuit_open',
      detail: `${detail}; a few tasks try whether it answers again.`,
    });
    expect((await engine.getQueue(queue)).live.circuit).toBe('half_open');
    await engine.cancelTasks({ queue });
  });

  it('R-RE9: two probes; each failed turn waits twice as long, up to five minutes', async () => {
    const { engine, clock } = under();
    const scene = await broughtDown(engine, 60);
    const { queue, worker } = scene;
    for (const seconds of [30, 60, 120, 240, 300, 300]) {
      clock.advance(seconds * secondMs - 1);
      expect(await worker.look(40)).toEqual([]);
      clock.advance(1);
      const probes = await worker.take(2);
      expect(await worker.look(40)).toEqual([]);
      await failAll(engine, scene, probes, unavailable);
      expect(await stateOf(engine, scene)).toBe('open');
    }
    await engine.cancelTasks({ queue });
  });

  it('R-RE9: a probe that failed lets others try next', async () => {
    const { engine, clock } = under();
    const scene = await broughtDown(engine, 60);
    const { queue, worker } = scene;
    clock.advance(30_000);
    const first = await worker.take(2);
    await failAll(engine, scene, first, unavailable);
    clock.advance(60_000);
    const second = await worker.take(2);
    const tried = first.map(({ taskId }) => taskId);
    expect(second.filter(({ taskId }) => tried.includes(taskId))).toEqual([]);
    await engine.cancelTasks({ queue });
  });

  it('R-RE9, R-RE11: who was pushed back lets others try first, and tries if there are none', async () => {
    const { engine, clock } = under();
    const { queue, worker } = await broughtDown(engine);
    const other = await TestWorker.register(engine, { queues: [queue] });
    clock.advance(30_000);
    expect(await worker.look(2)).toEqual([]);
    const tried = await other.take(2);
    expect(await worker.look(2)).toEqual([]);
    for (const task of tried) await other.fail(task, unavailable);
    clock.advance(minuteMs);
    expect(await other.look(2)).toEqual([]);
    expect(await other.look(2)).toHaveLength(2);
    await engine.cancelTasks({ queue });
  });

  it('R-RE9: a probe that is answered begins a gentle resume: a quarter, a half, all of it', async () => {
    const { engine, clock } = under();
    const scene = await prepare(engine, 400);
    const { queue, worker } = scene;
    await failAll(engine, scene, await worker.take(40), unavailable);
    clock.advance(30_000);
    const [probe, other] = await worker.take(2);
    if (probe === undefined || other === undefined) throw new Error('two were taken');
    await worker.complete(probe);
    // The other probe still runs.
    await worker.take(9);
    expect(await worker.look(100)).toEqual([]);
    const { taskId } = await engine.submit({ taskType, queue });
    expect((await engine.explainTask(taskId)).reasons).toContainEqual({
      kind: 'max_concurrency',
      detail: `Queue ${queue} runs 10 tasks; 10 is its most while its service recovers.`,
    });
    clock.advance(10_000);
    await worker.take(10);
    expect(await worker.look(100)).toEqual([]);
    expect(await stateOf(engine, scene)).toBe('half_open');
    clock.advance(10_000);
    await untilState(engine, scene, 'closed');
    await worker.take(100);
    await engine.cancelTasks({ queue });
  });

  it('R-RE9, R-CH4: the rate comes back gently too, and no window is over the limit', async () => {
    const { engine, clock } = under();
    const rate = 20;
    const limits = [{ unit: 'requests', rate, perSeconds: 10, burst: null }];
    const scene = await prepare(engine, 120, { limits });
    const { queue, worker } = scene;
    const last = await engine.submit({ taskType, queue });
    const starts: number[] = [];
    const call = async (error: AttemptError | null): Promise<number> => {
      const called = await worker.look(50);
      starts.push(...called.map(() => clock.nowMs()));
      await (error === null ? worker.completeAll(called) : failAll(engine, scene, called, error));
      return called.length;
    };
    const run = async (error: AttemptError | null): Promise<number> => {
      const count = await call(error);
      clock.advance(500);
      return count;
    };
    const runFor = async (steps: number): Promise<number> => {
      let count = 0;
      for (let step = 0; step < steps; step += 1) count += await run(null);
      return count;
    };
    /** The ready queue hears of a step a moment after Postgres; what it goes by shows when it is empty. */
    const untilSlowedTo = (seconds: number) =>
      until(`the limit to be ${String(rate)} in ${String(seconds)} s`, async () => {
        await call(null);
        const { reasons } = await engine.explainTask(last.taskId);
        return reasons.some(({ detail }) => detail.includes(` in ${String(seconds)} s of queue`));
      });
    expect(await runFor(20)).toBeGreaterThan(15);
    while ((await stateOf(engine, scene)) === 'closed') await run(unavailable);
    clock.advance(30_000);
    await until('a probe', async () => (await run(null)) > 0);
    // The ticks that make it quicker may be late, never early.
    const quarter = await runFor(18);
    expect(quarter).toBeGreaterThanOrEqual(3);
    expect(quarter).toBeLessThanOrEqual(6);
    clock.advance(1_000);
    await untilSlowedTo(20);
    const half = await runFor(18);
    expect(half).toBeGreaterThanOrEqual(7);
    expect(half).toBeLessThanOrEqual(11);
    clock.advance(1_000);
    await untilSlowedTo(10);
    expect(await stateOf(engine, scene)).toBe('closed');
    expect(await runFor(20)).toBeGreaterThan(15);
    starts.forEach((atMs, index) => {
      const past = starts[index - rate];
      if (past !== undefined) expect(atMs - past).toBeGreaterThanOrEqual(10_000);
    });
    await engine.cancelTasks({ queue });
  });

  it('R-RE9: pushed back while it recovers, it opens again for longer', async () => {
    const { engine, clock } = under();
    const scene = await prepare(engine, 100);
    const { queue, worker } = scene;
    await failAll(engine, scene, await worker.take(40), unavailable);
    clock.advance(30_000);
    await worker.completeAll(await worker.take(2));
    const calls = await worker.take(10);
    await failAll(engine, scene, calls.slice(0, 4), unavailable);
    expect(await stateOf(engine, scene)).toBe('half_open');
    await failAll(engine, scene, calls.slice(4), unavailable);
    const { live } = await engine.getQueue(queue);
    expect(live).toMatchObject({ circuit: 'open', pausedUntil: new Date(clock.nowMs() + 60_000) });
    await engine.cancelTasks({ queue });
  });

  it('R-RE9: a straggler’s success does not close it', async () => {
    const { engine, clock } = under();
    const scene = await prepare(engine, 60);
    const { queue, worker } = scene;
    const [early, late, ...others] = await worker.take(10);
    if (early === undefined || late === undefined) throw new Error('ten were taken');
    await failAll(engine, scene, others, unavailable);
    clock.advance(1_000);
    await worker.complete(early);
    expect(await stateOf(engine, scene)).toBe('open');
    expect(await worker.look(40)).toEqual([]);
    clock.advance(29_000);
    const probes = await worker.take(2);
    await worker.complete(late);
    expect(await worker.look(40)).toEqual([]);
    await worker.completeAll(probes.slice(0, 1));
    await worker.take(1);
    await engine.cancelTasks({ queue });
  });

  it('R-RE9: probes that come to nothing are replaced, and a slow one still counts', async () => {
    const { engine, clock } = under();
    const scene = await broughtDown(engine, 60);
    const { queue, worker } = scene;
    clock.advance(30_000);
    const [slow, gone] = await worker.take(2);
    if (slow === undefined || gone === undefined) throw new Error('two were taken');
    await engine.cancelTask(gone.taskId);
    clock.advance(29_999);
    expect(await worker.look(40)).toEqual([]);
    clock.advance(1);
    expect(await worker.take(2)).toHaveLength(2);
    expect(await worker.look(40)).toEqual([]);
    await worker.complete(slow);
    expect((await engine.getQueue(queue)).live).toMatchObject({
      circuit: 'half_open',
      pausedWhy: null,
    });
    await engine.cancelTasks({ queue });
  });

  it('R-RE9: to resume by hand closes it at once', async () => {
    const { engine } = under();
    const { queue, worker } = await broughtDown(engine);
    expect(await engine.resumeQueue(queue)).toMatchObject({
      live: { circuit: 'closed', pausedUntil: null, pausedWhy: null },
    });
    expect(await worker.look(20)).toHaveLength(20);
    await engine.cancelTasks({ queue });
  });

  it('R-RE9, R-CH7: new settings leave it open, and count when it is closed', async () => {
    const { engine, clock } = under();
    const scene = await broughtDown(engine);
    const { queue, worker } = scene;
    expect(await engine.putQueue(queue, { maxConcurrency: 7 })).toMatchObject({
      live: { circuit: 'open' },
    });
    await engine.pauseQueue(queue, new Date(clock.nowMs() + minuteMs));
    clock.advance(minuteMs - 1);
    expect(await worker.look(40)).toEqual([]);
    clock.advance(1);
    await worker.completeAll(await worker.take(2));
    clock.advance(20_000);
    await untilState(engine, scene, 'closed');
    expect(await worker.take(7)).toHaveLength(7);
    expect(await worker.look(40)).toEqual([]);
    await engine.cancelTasks({ queue });
  });

  it('R-RE9, R-CH9: its neighbours are untouched', async () => {
    const { engine } = under();
    const { queue } = await broughtDown(engine);
    const neighbour = await prepare(engine, 50);
    const both = await TestWorker.register(engine, { queues: [queue, neighbour.queue] });
    const taken = await both.take(50);
    expect(taken.every((task) => task.queue === neighbour.queue)).toBe(true);
    await both.completeAll(taken);
    expect(await stateOf(engine, neighbour)).toBe('closed');
    await engine.cancelTasks({ queue });
  });

  it('R-RE9, R-RE11: an outage is no worker’s fault, not even the failures that showed it', async () => {
    const { engine, clock } = under();
    const scene = await prepare(engine, 100);
    const { queue, worker } = scene;
    const other = await TestWorker.register(engine, { queues: [queue] });
    await failAll(engine, scene, await worker.take(10), unavailable);
    clock.advance(30_000);
    await failAll(engine, scene, await worker.take(2), unavailable);
    clock.advance(minuteMs);
    await other.completeAll(await other.take(2));
    // Failures of its own, while the other one succeeds: four of them are not enough.
    for (let time = 0; time < 4; time += 1) {
      await worker.fail(await worker.takeOne());
      await other.complete(await other.takeOne());
    }
    const benchedUntil = async () => (await engine.getWorker(worker.workerId)).benchedUntil;
    expect(await benchedUntil()).toBeNull();
    await worker.fail(await worker.takeOne());
    expect(await benchedUntil()).not.toBeNull();
    await engine.cancelTasks({ queue });
  });

  it('R-RE9, R-RE11: one that is cut off while others are answered is benched, and the queue goes on', async () => {
    const { engine, clock } = under();
    const { queue, worker: cutOff } = await prepare(engine, 200);
    const healthy = await TestWorker.register(engine, { queues: [queue] });
    const benchedUntil = async () => (await engine.getWorker(cutOff.workerId)).benchedUntil;
    await until('it to be benched', async () => {
      for (const task of await cutOff.look(4)) await cutOff.fail(task, unavailable);
      await healthy.completeAll(await healthy.look(1));
      clock.advance(secondMs);
      return (await benchedUntil()) !== null;
    });
    await engine.cancelTasks({ queue });
  });
});
