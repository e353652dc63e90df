import { expect, it } from 'vitest';
import { defineTask, Sluice } from '../../src/index.js';
import type { Engine, OpenEngineOptions } from '../../src/engine/open-engine.js';
import { ManualClock } from '../../src/runtime/clock.js';
import { createLog, type Logger } from '../../src/runtime/log.js';
import { until } from '../support/until.js';
import {
  broken,
  describeOnPostgres,
  drafts,
  freshQueue,
  submitAll,
  TestWorker,
  untilStatus,
  type TestServer,
} from './support.js';

type Line = Readonly<Record<string, unknown>> & { readonly msg: string };

function recorder(): { readonly log: Logger; readonly lines: Line[] } {
  const lines: Line[] = [];
  const write = (text: string) => void lines.push(JSON.parse(text) as Line);
  return { log: createLog('info', { write }), lines };
}

interface Scene {
  readonly engine: Engine;
  readonly clock: ManualClock;
  readonly queue: string;
  readonly worker: TestWorker;
  readonly lines: Line[];
}

async function prepare(
  server: TestServer,
  options: Omit<Partial<OpenEngineOptions>, 'database'>,
): Promise<Scene> {
  const { log, lines } = recorder();
  const clock = new ManualClock(Date.now());
  const engine = await server.open({ log, clock, random: () => 0.5, ...options });
  const queue = freshQueue();
  const worker = await TestWorker.register(engine, { queues: [queue] });
  lines.length = 0;
  return { engine, clock, queue, worker, lines };
}

const leaseMs = 60_000;
const texts = (lines: readonly Line[]) => lines.map(({ msg }) => msg);
const hex = (taskId: string) => taskId.replaceAll('-', '');

describeOnPostgres('the log of transitions', (server) => {
  it('R-OB8: with "all" every change of a task is a line, with worker, trace, wait and duration', async () => {
    const { engine, clock, queue, worker, lines } = await prepare(server(), {
      logTransitions: 'all',
    });
    const draft = { taskType: 'chat', queue };
    const { taskId } = await engine.submit({ ...draft, traceId: 'given-trace', delaySeconds: 5 });
    clock.advance(5_000);
    const task = await worker.takeOne({ prefetch: true });
    await engine.start(worker.workerId, task);
    await engine.start(worker.workerId, task);
    clock.advance(1_500);
    await worker.complete(task);
    const worked = { worker_id: worker.workerId, attempt: 1 };
    expect(lines).toMatchObject(
      [
        { msg: 'task submitted', from: 'new', to: 'pending', attempt: 0 },
        { msg: 'task queued', from: 'pending', to: 'queued', attempt: 0 },
        { msg: 'task assigned', from: 'queued', to: 'assigned', wait_ms: 0, ...worked },
        { msg: 'task started', from: 'assigned', to: 'executing', ...worked },
        { msg: 'task completed', from: 'executing', duration_ms: 1_500, ...worked },
      ].map((line) => ({
        ...line,
        ...{ level: 30, task_id: taskId, task_type: 'chat', queue, trace_id: 'given-trace' },
      })),
    );
    lines.length = 0;
    // Known to this process from its claim, and a trace of its own.
    const own = await engine.submit(draft);
    await worker.complete(await worker.takeOne());
    expect(texts(lines)).toEqual(['task submitted', 'task started', 'task completed']);
    expect(lines.map(({ trace_id }) => trace_id)).toEqual(Array(3).fill(hex(own.taskId)));
  });

  it('R-OB8: a task that is cancelled, replayed or moved has a line as well', async () => {
    const { engine, clock, queue, lines } = await prepare(server(), { logTransitions: 'all' });
    const { taskId } = await engine.submit({ taskType: 'chat', queue, traceId: 'mine' });
    await engine.changeTask(taskId, { runAt: new Date(clock.nowMs() + 60_000) });
    await engine.cancelTask(taskId);
    await engine.replayTask(taskId);
    expect(texts(lines).slice(0, 4)).toEqual([
      'task submitted',
      'task rescheduled',
      'task cancelled',
      'task replayed',
    ]);
    expect(lines.every(({ trace_id }) => trace_id === 'mine')).toBe(true);
  });

  it('R-OB8: by default problems are logged, and nothing of a healthy task', async () => {
    const { engine, clock, queue, worker, lines } = await prepare(server(), {});
    const { taskId } = await engine.submit({ taskType: 'chat', queue, maxRetries: 1 });
    await worker.fail(await worker.takeOne(), { code: 'HTTP_500', message: 'a secret prompt' });
    clock.advance(60_000);
    await worker.fail(await worker.takeOne(), { code: 'HTTP_500', message: 'a secret prompt' });
    await engine.submit({ taskType: 'chat', queue });
    await worker.complete(await worker.takeOne());
    const told = lines.filter(({ task_id }) => task_id !== undefined);
    const failed = { level: 40, error_code: 'HTTP_500', task_id: taskId, trace_id: hex(taskId) };
    expect(told).toMatchObject([
      { msg: 'task retried', to: 'pending', attempt: 1, retry_in_ms: 1_150, ...failed },
      { msg: 'task is a dead letter', attempt: 2, reason: 'all 1 retries are spent', ...failed },
    ]);
    // R-AD6: what a handler threw is in the log of its worker.
    expect(JSON.stringify(lines)).not.toContain('secret');
  });

  it('R-OB8: lapses, tasks that nobody started, expired ones and cancellations are problems', async () => {
    const { engine, clock, queue, worker, lines } = await prepare(server(), {
      settings: { leaseMs },
    });
    const draft = { taskType: 'chat', queue };
    const expiring = { taskType: 'nobody', queue: freshQueue(), dispatchDeadlineSeconds: 40 };
    const expired = await engine.submit(expiring);
    const lost = await engine.submit(draft);
    await worker.takeOne();
    const cancelled = await engine.submit({ ...draft, delaySeconds: 3_600 });
    await engine.cancelTask(cancelled.taskId);
    clock.advance(leaseMs + 1);
    await untilStatus(engine, expired.taskId, 'failed');
    await untilStatus(engine, lost.taskId, 'pending', 'queued');
    const told = await until('three lines', () => {
      const found = lines.filter(({ task_id }) => task_id !== undefined);
      return found.length === 3 ? found : null;
    });
    expect(told).toMatchObject(
      expect.arrayContaining([
        expect.objectContaining({ msg: 'task cancelled', task_id: cancelled.taskId }),
        expect.objectContaining({ msg: 'task expired', error_code: 'capacity' }),
        expect.objectContaining({
          msg: 'lease lapsed, task retried',
          error_code: 'WORKER_LOST',
          error_message: expect.stringContaining('silent') as string,
          worker_id: worker.workerId,
        }),
      ]) as object,
    );
  });

  it('R-OB8: refused submits and circuits are problems, a flood of them a few lines', async () => {
    const { engine, queue, worker, lines } = await prepare(server(), {});
    await engine.putQueue(queue, { maxActive: 10 });
    await submitAll(engine, drafts(10, { taskType: 'chat', queue, priority: 'high' }));
    const refused = await engine.submitMany(drafts(500, { taskType: 'chat', queue }));
    expect(refused.every(({ kind }) => kind === 'refused')).toBe(true);
    const told = lines.filter(({ msg }) => msg === 'submit refused');
    expect(told).toHaveLength(20);
    expect(told[0]).toMatchObject({
      level: 40,
      queue,
      priority: 'medium',
      reason: 'queue_max_active',
    });
    lines.length = 0;
    const away = { ...broken, code: 'UNAVAILABLE' };
    await Promise.all((await worker.take(5)).map((task) => worker.fail(task, away)));
    const opened = lines.filter(({ msg }) => msg.startsWith('circuit opened'));
    expect(opened).toMatchObject([{ level: 40, queue, reason: expect.any(String) as string }]);
    await engine.close();
    expect(lines.at(-1)).toMatchObject({
      msg: 'submit refused: more than are logged one by one',
      left_out: 480,
      kinds: { [`${queue} queue_max_active`]: 480 },
    });
  });

  it('R-OB8: a worker that is suspended, and trusted again, has a line', async () => {
    const { engine, clock, queue, worker, lines } = await prepare(server(), {});
    const healthy = await TestWorker.register(engine, { queues: [queue] });
    await submitAll(engine, drafts(20, { taskType: 'chat', queue }));
    for (let time = 0; time < 5; time += 1) {
      await worker.fail(await worker.takeOne());
      await healthy.complete(await healthy.takeOne());
    }
    const [suspended] = lines.filter(({ msg }) => msg.startsWith('worker suspended'));
    expect(suspended).toMatchObject({
      level: 40,
      worker_id: worker.workerId,
      suspended_until: new Date(clock.nowMs() + 60_000).toISOString(),
      others_succeeded: [healthy.workerId],
    });
    clock.advance(60_001);
    await worker.complete(await worker.takeOne());
    expect(lines.at(-1)).toMatchObject({
      level: 30,
      msg: 'worker trusted again: it succeeded',
      worker_id: worker.workerId,
    });
  });

  it('R-OB8: "off" logs no transition', async () => {
    const { engine, queue, worker, lines } = await prepare(server(), { logTransitions: 'off' });
    await engine.submit({ taskType: 'chat', queue, maxRetries: 0 });
    await worker.fail(await worker.takeOne());
    expect(lines).toEqual([]);
  });

  it('R-OB8: an embedded Sluice logs a failed attempt once, with what the handler threw', async () => {
    const { log, lines } = recorder();
    const taskType = 'explode';
    const explode = defineTask({
      type: taskType,
      maxRetries: 0,
      run: () => {
        throw new Error('boom');
      },
    });
    await using sluice = await Sluice.open({ databaseUrl: server().url, log });
    await sluice.worker([explode], { log }).start();
    const handle = await sluice.submit(explode, {});
    await expect(handle.result()).rejects.toThrow('boom');
    const about = lines.filter(({ task_id }) => task_id === handle.id);
    expect(about).toMatchObject([{ msg: 'task is a dead letter', error_message: 'boom' }]);
  });
});
