import { setTimeout as delay } from 'node:timers/promises';

import { expect, inject, it } from 'vitest';

import { SluiceError } from '../../src/domain/errors.js';
import type { Engine } from '../../src/engine/open-engine.js';
import type { WorkerId } from '../../src/domain/ids.js';
import { ManualClock } from '../../src/runtime/clock.js';
import { silentLog } from '../../src/runtime/log.js';
import type { TaskHandler } from '../../src/worker/handler.js';
import { Worker } from '../../src/worker/worker.js';
import { Gate } from '../support/gate.js';
import { until } from '../support/until.js';
import { openOnHeldLine } from './stalls.js';
import {
  describeOnPostgres,
  drafts,
  freshQueue,
  refusal,
  submitAll,
  TestWorker,
  untilStatus,
} from './support.js';

const leaseMs = 2_600;
const times = { leaseMs, heartbeatIntervalMs: 500 };
const count = 20;

interface Lock {
  readonly what: string;
  readonly statement: (workerId: WorkerId) => string;
}

const locks: readonly Lock[] = [
  {
    what: 'the tables of a heartbeat',
    statement: () => 'lock table sluice.tasks, sluice.workers',
  },
  {
    what: 'the API keys, without which no heartbeat is let in',
    statement: () => 'lock table sluice.api_keys',
  },
  {
    what: 'the row of the worker',
    statement: (workerId) => `select from sluice.workers where id = '${workerId}' for update`,
  },
];

describeOnPostgres('locks that somebody else holds', (server) => {
  it.each(locks)(
    'R-HA2: a lock on $what for longer than the lease is no silence of a worker',
    async ({ statement }) => {
      const redisUrl = inject('redisUrl');
      const [engine, other] = await Promise.all([
        server().open({ redisUrl, settings: times }),
        server().open({ redisUrl, settings: times }),
      ]);
      const queue = freshQueue();
      const worker = await TestWorker.register(engine, { queues: [queue] });
      await submitAll(engine, drafts(count, { taskType: 'long', queue, maxRetries: 0 }));
      const held = await worker.take(count);
      const holder = await server().connect();
      await holder.query('begin');
      await holder.query(statement(worker.workerId));
      await delay(1.3 * leaseMs);
      await holder.query('commit');
      // Its next beat is due in an interval; sweeps of both servers may come first.
      await untilSwept(other);
      await untilSwept(engine);
      expect(await beatAnswer(worker.beat(held))).toMatchObject({ lost: [] });
      const answers = await worker.completeAll(held);
      expect(answers.filter(({ accepted }) => accepted)).toHaveLength(count);
    },
  );

  it('R-HA2: handlers go on while a table is locked for longer than the lease, and run once', async () => {
    const slower = { leaseMs: 3_500, heartbeatIntervalMs: 1_000 };
    const engine = await server().open({ settings: slower });
    const go = new Gate();
    let runs = 0;
    let aborted = 0;
    const long: TaskHandler = {
      type: 'long',
      run: async (_, { signal }) => {
        runs += 1;
        signal.addEventListener('abort', () => (aborted += 1));
        await go.passed;
      },
    };
    const worker = new Worker(engine, [long], { drainTimeoutMs: 100, log: silentLog });
    await worker.start();
    const taskIds = await submitAll(engine, drafts(count, { taskType: 'long', maxRetries: 0 }));
    await until('all to run', () => runs === count);
    const holder = await server().connect();
    await holder.query('begin');
    await holder.query('lock table sluice.tasks');
    await delay(1.3 * slower.leaseMs);
    await holder.query('commit');
    go.open();
    for (const taskId of taskIds) await untilStatus(engine, taskId, 'completed');
    expect({ runs, aborted }).toEqual({ runs: count, aborted: 0 });
    await worker.stop();
  });

  it('R-HA2: a server that could not write heartbeats pauses the count of its workers on the others', async () => {
    const redisUrl = inject('redisUrl');
    const { engine, line } = await openOnHeldLine(server(), inject('redisUrl'), {}, times);
    const other = await server().open({ redisUrl, settings: times });
    const queue = freshQueue();
    const worker = await TestWorker.register(engine, { queues: [queue] });
    await submitAll(engine, drafts(count, { taskType: 'long', queue, maxRetries: 0 }));
    const held = await worker.take(count);
    await worker.beat(held);
    line.freeze();
    await delay(0.8 * leaseMs);
    line.letGo();
    await delay(0.6 * leaseMs);
    await untilSwept(other);
    expect(await beatAnswer(worker.beat(held))).toMatchObject({ lost: [] });
    const answers = await worker.completeAll(held);
    expect(answers.filter(({ accepted }) => accepted)).toHaveLength(count);
  });

  it('R-HA2: a server that vanished with its workers delays their burial by no more than the lease, at no cost', async () => {
    const redisUrl = inject('redisUrl');
    const { engine, line } = await openOnHeldLine(server(), inject('redisUrl'), {}, times);
    const other = await server().open({ redisUrl, settings: times });
    const queue = freshQueue();
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const [taskId] = await submitAll(engine, drafts(1, { taskType: 'long', queue, maxRetries: 0 }));
    if (taskId === undefined) throw new Error('one was submitted');
    const [task] = await worker.take(1);
    await worker.beat(task === undefined ? [] : [task]);
    line.freeze();
    const lapsed = await untilStatus(other, taskId, 'pending', 'queued', 'dead_letter');
    expect(lapsed).toMatchObject({ retryCount: 0 });
    expect(lapsed.status).not.toBe('dead_letter');
    line.letGo();
  });

  it('R-HA2: the silence of workers whose server was stopped for longer than the lease costs no retry', async () => {
    const redisUrl = inject('redisUrl');
    const [engine, other] = await Promise.all([
      server().open({ redisUrl, settings: times }),
      server().open({ redisUrl, settings: times }),
    ]);
    const queue = freshQueue();
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const { taskId } = await engine.submit({ taskType: 'long', queue, maxRetries: 0 });
    await worker.beat(await worker.take(1));
    await engine.close();
    const lapsed = await untilStatus(other, taskId, 'pending', 'queued', 'dead_letter');
    expect(lapsed.status).not.toBe('dead_letter');
    expect(lapsed).toMatchObject({ retryCount: 0 });
  });

  it('R-HA2: heartbeats that fail again and again keep no dead worker alive', async () => {
    const clock = new ManualClock(Date.now());
    const slower = { leaseMs: 6_000, heartbeatIntervalMs: 1_500 };
    const engine = await server().open({ clock, settings: slower });
    const [queue, failing] = [freshQueue(), await TestWorker.register(engine)];
    // As where some rows don't fit on the disk any more: proofs succeed.
    await server().sql(
      `create function no_space() returns trigger language plpgsql as $$
       begin raise exception 'no space' using errcode = '53100'; end $$;
       create trigger no_space before update on sluice.workers for each row
       when (new.id = '${failing.workerId}' and new.status <> 'dead') execute function no_space()`,
    );
    const dead = await TestWorker.register(engine, { queues: [queue] });
    const { taskId } = await engine.submit({ taskType: 'long', queue, maxRetries: 0 });
    await dead.take(1);
    const stop = failing.keepBeating(100);
    // Less than a lease between two proofs, for as long as it takes.
    const back = await until('the task to come back', async () => {
      const heardNow = 'select from sluice.servers where heard_at = $1::timestamptz';
      const proofs = await server().sql(heardNow, [new Date(clock.nowMs())]);
      if (proofs.length > 0) clock.advance(slower.leaseMs * 0.9);
      const task = await engine.getTask(taskId);
      return task.status === 'executing' ? null : task;
    });
    stop();
    expect(back.status).not.toBe('dead_letter');
    expect(back).toMatchObject({ retryCount: 0 });
    await server().sql('drop trigger no_space on sluice.workers; drop function no_space()');
    await engine.cancelTasks({ queue });
  });

  it('R-HA2: a lock that keeps results from being written times out no task that has ended', async () => {
    const engine = await server().open({ settings: { ...times, timeoutGraceMs: 1_500 } });
    const run = () => 'kept';
    const done = { type: 'done', run } satisfies TaskHandler;
    const worker = new Worker(engine, [done], { drainTimeoutMs: 100, log: silentLog });
    await worker.start();
    const draft = { timeoutSeconds: 1, maxRetries: 0 };
    const holder = await server().connect();
    await holder.query('begin');
    await holder.query('lock table sluice.task_history in share mode');
    const { taskId } = await engine.submit({ taskType: 'done', ...draft });
    await untilStatus(engine, taskId, 'executing');
    // One that nobody ends is timed out, and shows that the sweeper was there.
    const other = await TestWorker.register(engine, { taskTypes: ['never'] });
    const never = await engine.submit({ taskType: 'never', ...draft });
    const stop = other.keepBeating(300);
    await other.take(1);
    await untilStatus(engine, never.taskId, 'dead_letter');
    stop();
    expect(await engine.getTask(taskId)).toMatchObject({ status: 'executing' });
    await holder.query('commit');
    await untilStatus(engine, taskId, 'completed');
    await worker.stop();
  });

  it('R-HA2: submits during a lock are refused within 5 s, each with when to come back', async () => {
    const engine = await server().open();
    const holder = await server().connect();
    await holder.query('begin');
    await holder.query('lock table sluice.tasks');
    const workflow = { workflowId: 'flow' };
    const submits = Array.from({ length: 60 }, async (_, n) => {
      // Not all at once: one batch is under way when the next comes.
      await delay(25 * n);
      const beganMs = performance.now();
      const error = await engine
        .submit({ taskType: 'noop', ...(n % 3 === 0 ? workflow : {}) })
        .then(
          () => null,
          (thrown: unknown) => thrown,
        );
      return { error, tookMs: performance.now() - beganMs };
    });
    const answers = await Promise.all(submits);
    await holder.query('rollback');
    const codes = answers.map(({ error }) => (error instanceof SluiceError ? error.code : error));
    expect(new Set(codes)).toEqual(new Set(['unavailable']));
    const slowestMs = Math.max(...answers.map(({ tookMs }) => tookMs));
    expect(slowestMs).toBeLessThan(5_000);
    expect(await until('a submit', () => engine.submit({ taskType: 'noop' }))).toBeTruthy();
    await engine.cancelTasks({});
  });
});

async function beatAnswer(beat: ReturnType<TestWorker['beat']>): Promise<unknown> {
  const code = await refusal(beat);
  return code ?? beat;
}

/** A task that a sweep fails shows that it took place. */
async function untilSwept(engine: Engine): Promise<void> {
  const marker = { taskType: 'x', queue: 'nobody', dispatchDeadlineSeconds: 0 };
  const { taskId } = await until('a submit', () => engine.submit(marker));
  await untilStatus(engine, taskId, 'failed');
}
