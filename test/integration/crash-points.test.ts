import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { describe, expect, it, onTestFinished } from 'vitest';

import { IdSource, type TaskId, type WorkerId } from '../../src/domain/ids.js';
import type { TaskState } from '../../src/domain/task-state.js';
import { openDatabase, openEngine, type DatabaseOptions } from '../../src/engine/open-engine.js';
import { silentLog } from '../../src/runtime/log.js';
import type { Database } from '../../src/store/database.js';
import { migrate } from '../../src/store/migrate.js';
import { ensurePartitions } from '../../src/store/partitions.js';
import { registerWorker } from '../../src/store/workers.js';
import { atSecond, seedTask, type Seed } from '../store/seed.js';
import { createDataFolder } from '../support/pglite.js';
import { createTestDatabase } from '../support/postgres.js';
import { until } from '../support/until.js';
import { describeOnPostgres, drafts, quickTicks, submitAll, TestWorker } from './support.js';

const ids = new IdSource();

interface Left {
  readonly seed: Seed;
  readonly becomes: TaskState;
  /** What it cost: a retry, or nothing. */
  readonly retries: number;
}

/** What a server that was killed can leave behind. */
function leftBehind(
  deadWorker: WorkerId,
  silentWorker: WorkerId,
  heardWorker: WorkerId,
): Record<string, Left> {
  const pending = 'pending';
  return {
    'queued, and in no ready queue': { seed: {}, becomes: 'queued', retries: 0 },
    'waiting for a time that has come': {
      seed: { status: pending, waitsFor: 'time', runAt: atSecond(-60) },
      becomes: 'queued',
      retries: 0,
    },
    'waiting for a time that is to come': {
      seed: { status: pending, waitsFor: 'time', runAt: atSecond(3_600) },
      becomes: 'pending',
      retries: 0,
    },
    'with a worker that is dead': {
      seed: { status: 'executing', workerId: deadWorker },
      becomes: 'queued',
      retries: 1,
    },
    'with a worker that nobody knows': {
      seed: { status: 'executing' },
      becomes: 'queued',
      retries: 1,
    },
    'with a worker that was silent while we were away': {
      seed: { status: 'executing', workerId: silentWorker },
      becomes: 'queued',
      retries: 0,
    },
    'assigned, and never started': {
      seed: { status: 'assigned', workerId: silentWorker, lapsesAt: atSecond(-60) },
      becomes: 'queued',
      retries: 0,
    },
    'past its timeout, with a worker that was heard since': {
      seed: { status: 'executing', workerId: heardWorker, lapsesAt: atSecond(-60) },
      becomes: 'queued',
      retries: 1,
    },
    'past its timeout, with a worker that may have finished it while we were away': {
      seed: { status: 'executing', workerId: silentWorker, lapsesAt: atSecond(-60) },
      becomes: 'queued',
      retries: 0,
    },
    'past its dispatch deadline': {
      seed: { deadlineSeconds: 30, eligibleAt: atSecond(-60) },
      becomes: 'failed',
      retries: 0,
    },
    'first of its workflow, and still told to wait': {
      seed: { status: pending, waitsFor: 'workflow', workflowId: 'stuck' },
      becomes: 'queued',
      retries: 0,
    },
    'behind a member that was cancelled while a worker, now dead, ran it': {
      seed: { status: pending, waitsFor: 'workflow', workflowId: 'held' },
      becomes: 'queued',
      retries: 0,
    },
    'behind a dead letter that halts its workflow': {
      seed: { status: pending, waitsFor: 'workflow', workflowId: 'halted' },
      becomes: 'pending',
      retries: 0,
    },
  };
}

async function recoversAtBoot(database: DatabaseOptions): Promise<void> {
  const deadWorker = randomUUID() as WorkerId;
  const silentWorker = randomUUID() as WorkerId;
  const heardWorker = randomUUID() as WorkerId;
  const cases = leftBehind(deadWorker, silentWorker, heardWorker);
  const taskIds = new Map<string, TaskId>();

  const db = await openDatabase(database, silentLog);
  await migrate(db);
  await ensurePartitions(db, 2, null);
  await registerWorker(db, deadWorker, { capacity: 9 }, atSecond(-3_600));
  await db.query("update sluice.workers set status = 'dead'");
  await registerWorker(db, silentWorker, { capacity: 9 }, atSecond(-3_600));
  await registerWorker(db, heardWorker, { capacity: 9 }, new Date());
  await seedTask(db, { status: 'dead_letter', workflowId: 'halted' });
  for (const [name, { seed }] of Object.entries(cases)) {
    taskIds.set(name, (await seedTask(db, seed)).taskId);
  }
  await holdPlace(db, 'held', deadWorker);
  await db.close();

  const engine = await openEngine({
    database,
    // Long beside a sweep of a busy machine: what timed out is ended before its worker is buried.
    settings: { ...quickTicks, heartbeatIntervalMs: 100, leaseMs: 6_000 },
  });
  onTestFinished(() => engine.close());
  const view = async ([name, taskId]: readonly [string, TaskId]) => {
    const { status, retryCount: retries } = await engine.getTask(taskId);
    return [name, { status, retries }] as const;
  };
  const wanted = Object.entries(cases).map(
    ([name, { becomes, retries }]) => [name, { status: becomes, retries }] as const,
  );
  let found = wanted;
  // Nothing is asked of it but how its tasks are. Retries wait for their backoff of a second.
  await until('all to be recovered', async () => {
    found = await Promise.all([...taskIds].map(view));
    return JSON.stringify(found) === JSON.stringify(wanted);
  }).catch(() => undefined);
  expect(Object.fromEntries(found)).toEqual(Object.fromEntries(wanted));

  const queued = wanted.filter(([, { status }]) => status === 'queued');
  await until('the ready queue to hold what is queued', async () => {
    const { live } = await engine.getQueue('default');
    return live.depth.medium === queued.length;
  });
  const worker = await TestWorker.register(engine);
  const stopBeating = worker.keepBeating(50);
  onTestFinished(stopBeating);
  const tasks = await worker.take(queued.length);
  const answers = await worker.completeAll(tasks);
  expect(answers.every(({ accepted }) => accepted)).toBe(true);
}

async function holdPlace(db: Database, workflowId: string, workerId: WorkerId): Promise<void> {
  await db.query(
    `update sluice.workflows set held_task = gen_random_uuid(), held_lease = gen_random_uuid(),
       held_worker_id = $2, held_since = now(), held_until = now() + interval '1 hour'
     where id = $1`,
    [workflowId, workerId],
  );
}

describe('what a killed server left behind', () => {
  it('R-RE6: is recovered at boot, with nobody asking, on PGlite', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'sluice-crash-points-'));
    onTestFinished(() => {
      rmSync(dataDir, { recursive: true, force: true });
    });
    createDataFolder(dataDir);
    await recoversAtBoot({ kind: 'pglite', dataDir });
  });

  it('R-RE6: is recovered at boot, with nobody asking, on Postgres', async () => {
    const { url, drop } = await createTestDatabase();
    onTestFinished(drop);
    await recoversAtBoot({ kind: 'postgres', url });
  });
});

describeOnPostgres('between a commit and what follows it', (server) => {
  it('R-RE6: committed and never offered: the sweeper’s lap offers it, however much it is', async () => {
    const engine = await server().open();
    await insertQueued(2_500, 'never-offered');
    const worker = await TestWorker.register(engine, { queues: ['never-offered'] });
    const tasks = await worker.take(2_500);
    expect(new Set(tasks.map(({ taskId }) => taskId)).size).toBe(2_500);
    await worker.completeAll(tasks);
  });

  it('R-CH12: committed as pending by another process: discovered, with no sweep', async () => {
    const engine = await server().open({ settings: { sweepIntervalMs: 3_600_000 } });
    const other = await server().open({ role: 'submit' });
    const worker = await TestWorker.register(engine, { queues: ['elsewhere'] });
    const waiting = worker.take(10);
    await submitAll(other, drafts(10, { taskType: 'noop', queue: 'elsewhere' }));
    await worker.completeAll(await waiting);
  });

  it('R-ST1: an entry whose task is gone, or no longer queued, is passed over', async () => {
    const engine = await server().open({ settings: { sweepIntervalMs: 3_600_000 } });
    const taskIds = await submitAll(engine, drafts(30, { taskType: 'noop', queue: 'stale' }));
    await server().sql('delete from sluice.tasks where id = any($1)', [taskIds.slice(0, 10)]);
    await server().sql(
      `update sluice.tasks set status = 'pending', waits_for = 'time', run_at = now() + '1 hour'
       where id = any($1)`,
      [taskIds.slice(10, 20)],
    );
    const worker = await TestWorker.register(engine, { queues: ['stale'] });
    const tasks = await worker.take(10);
    expect(tasks.map(({ taskId }) => taskId)).toEqual(taskIds.slice(20));
    expect(await worker.look(5)).toEqual([]);
    await worker.completeAll(tasks);
  });

  it('R-CH6: a claim that Postgres refused gives its slot back', async () => {
    const engine = await server().open({ settings: { sweepIntervalMs: 3_600_000 } });
    await engine.putQueue('refused', { maxConcurrency: 1 });
    const taskIds = await submitAll(engine, drafts(3, { taskType: 'noop', queue: 'refused' }));
    await server().sql('delete from sluice.tasks where id = any($1)', [taskIds.slice(0, 2)]);
    const worker = await TestWorker.register(engine, { queues: ['refused'] });
    const task = await worker.takeOne();
    expect(task.taskId).toBe(taskIds[2]);
    await worker.complete(task);
  });

  it('R-WO9: timed out while we were away: its worker still has the time to report its result', async () => {
    const before = await server().open();
    const worker = await TestWorker.register(before, { queues: ['overdue'] });
    await submitAll(before, drafts(1, { taskType: 'noop', queue: 'overdue' }));
    const task = await worker.takeOne();
    await before.close();
    await server().sql(
      "update sluice.tasks set lapses_at = now() - interval '1 hour' where id = $1",
      [task.taskId],
    );
    // It has the time of a heartbeat, which is longer than a busy machine takes for all of this.
    const engine = await server().open({ settings: { heartbeatIntervalMs: 60_000 } });
    // A sweep looks at attempts first and at deadlines after them: this one has seen the attempt.
    const late = await engine.submit({
      taskType: 'noop',
      queue: 'nobody',
      dispatchDeadlineSeconds: 1,
    });
    await until(
      'a sweep to pass',
      async () => (await engine.getTask(late.taskId)).status === 'failed',
    );
    const report = { ...task, status: 'completed', result: 'kept' } as const;
    expect(await engine.report(worker.workerId, [report])).toMatchObject([{ accepted: true }]);
  });

  it('R-RE8: killed between the claim and its answer: after two heartbeats it is anybody’s', async () => {
    const engine = await server().open({ settings: { heartbeatIntervalMs: 50 } });
    const worker = await TestWorker.register(engine, { queues: ['unanswered'] });
    const [taskId] = await submitAll(engine, drafts(1, { taskType: 'noop', queue: 'unanswered' }));
    // Committed, and nobody heard of it.
    await server().sql(
      `update sluice.tasks set status = 'executing', lease = gen_random_uuid(), worker_id = $2,
         attempt = 1, assigned_at = now(), started_at = now(), lapses_at = now() + '10 min'
       where id = $1`,
      [taskId, worker.workerId],
    );
    expect(await worker.look(1)).toEqual([]);
    const [task] = await until('it to come back', async () => {
      await worker.beat([]);
      const tasks = await worker.look(1);
      return tasks.length > 0 ? tasks : null;
    });
    expect(task).toMatchObject({ taskId, attempt: 2, retryCount: 0 });
  });

  it('R-RE8: Postgres restarted in the middle: what was accepted is there, and work goes on', async () => {
    const engine = await server().open();
    const worker = await TestWorker.register(engine, { queues: ['interrupted'] });
    await submitAll(engine, drafts(200, { taskType: 'noop', queue: 'interrupted' }));
    const held = await worker.take(100);
    // As a restart does: every connection breaks.
    await server().sql(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid()`,
    );
    await until('the engine to answer again', () => engine.getQueue('interrupted'));
    const answers = await until('the reports to be taken', () => worker.completeAll(held));
    expect(answers.every(({ accepted }) => accepted)).toBe(true);
    const rest = await worker.take(100);
    await worker.completeAll(rest);
    const left = await server().sql("select from sluice.tasks where queue = 'interrupted'");
    expect(left).toEqual([]);
  });

  async function insertQueued(count: number, queue: string): Promise<void> {
    await server().sql(
      `with drafted as (
         select id, n from unnest($1::uuid[]) with ordinality as draft (id, n)
       ), input as (
         insert into sluice.task_inputs (task_id, parameters)
         select id, json_build_object('index', n - 1) from drafted
       )
       insert into sluice.tasks
         (id, queue, task_type, priority, status, created_at, eligible_at, queued_at,
          timeout_seconds, max_retries)
       select id, $2, 'noop', 1, 'queued', now(), now(), now(), 600, 3 from drafted order by n`,
      [Array.from({ length: count }, () => ids.nextTaskId(Date.now())), queue],
    );
  }
});
