import { randomUUID } from 'node:crypto';

import { afterEach, expect, inject, it } from 'vitest';

import { IdSource, type WorkerId } from '../../src/domain/ids.js';
import type { EngineContext } from '../../src/engine/context.js';
import { Engine } from '../../src/engine/engine.js';
import { TaskEvents } from '../../src/engine/events.js';
import { openEngine } from '../../src/engine/open-engine.js';
import { defaultEngineSettings, type EngineSettings } from '../../src/engine/settings.js';
import { MemoryReadyQueue } from '../../src/ready/memory/memory-ready-queue.js';
import { AnswerBudget } from '../../src/engine/answer-budget.js';
import { LocalBus } from '../../src/runtime/bus.js';
import { ManualClock, systemClock } from '../../src/runtime/clock.js';
import { silentLog } from '../../src/runtime/log.js';
import type { Database, Queryable } from '../../src/store/database.js';
import { describeOnPostgres as describeOnEmptyPostgres } from '../store/support.js';
import { until } from '../support/until.js';
import { describeOnPostgres, freshQueue, quickTicks, TestWorker, untilStatus } from './support.js';

const ids = new IdSource();

/** Does what the database does, and keeps what it was asked. */
function watched(db: Database): { readonly db: Database; readonly statements: string[] } {
  const statements: string[] = [];
  const watch = (on: Queryable): Queryable => ({
    query: (text, parameters) => {
      statements.push(text);
      return on.query(text, parameters);
    },
    run: (script) => on.run(script),
  });
  const watchedDb: Database = {
    ...watch(db),
    urgent: watch(db.urgent),
    vital: watch(db.vital),
    reads: watch(db.reads),
    ordered: watch({ ...db, ...db.ordered }),
    transaction: (work) => db.transaction((tx) => work(watch(tx))),
    isExclusive: db.isExclusive,
    nowMs: () => db.nowMs(),
    close: () => db.close(),
  };
  return { db: watchedDb, statements };
}

function countSweeps(statements: readonly string[]): number {
  return statements.filter((text) => text.includes('as lapsed_workers')).length;
}

function isBeat(statement: string): boolean {
  return statement.includes('update sluice.workers');
}

describeOnEmptyPostgres('what a server asks of Postgres', (postgres) => {
  const engines: Engine[] = [];

  async function open(
    settings: Partial<EngineSettings> = {},
    clock: ManualClock | null = null,
  ): Promise<{ engine: Engine; statements: string[] }> {
    const { db, statements } = watched(await postgres().open());
    const ready = new MemoryReadyQueue({ clock: clock ?? systemClock });
    const context: EngineContext = {
      db,
      ready,
      bus: new LocalBus(),
      closeLinks: () => ready.close(),
      mode: 'memory',
      answers: new AnswerBudget(),
      events: new TaskEvents(() => undefined),
      settings: { ...defaultEngineSettings, ...settings },
      log: silentLog,
      random: () => 0.5,
      clock,
    };
    const engine = new Engine(context, 'serve');
    await engine.begin();
    engines.push(engine);
    return { engine, statements };
  }

  afterEach(() => Promise.all(engines.splice(0).map((engine) => engine.close())));

  it('R-RE6: a server with nothing to do asks five times a second, and writes its turn and that it can hear', async () => {
    const { statements } = await open();
    // The first one also does what is done once a minute.
    await until('the second sweep', () => countSweeps(statements) >= 2);
    statements.length = 0;
    const beganMs = performance.now();
    await new Promise((resolve) => setTimeout(resolve, 4_000));
    const seconds = Math.ceil((performance.now() - beganMs) / 1000);
    expect(statements.length).toBeLessThanOrEqual(5 * seconds + 5);
    const writes = statements.filter((text) => /\b(insert|update|delete|for )\b/.test(text));
    expect(writes.filter((text) => !/sluice\.serv(ing|ers)/.test(text))).toEqual([]);
  });

  it('R-WO5: the heartbeats of a thousand workers are a few statements, and written in place', async () => {
    const { engine: before } = await open();
    const workerIds = await register(before, 1_000);
    await holdTen(workerIds);
    await before.close();
    // One that knows none of them.
    const { engine, statements } = await open({
      sweepIntervalMs: 30_000,
      discoverIntervalMs: 30_000,
    });
    const beat = (workerId: WorkerId) =>
      engine.heartbeat(workerId, { currentLoad: 10, status: 'active', memoryUsage: 0.5 });
    const ofBeats = () =>
      statements.filter(
        (text) => /update sluice\.workers|id = any/.test(text) && !text.includes('sluice.servers'),
      );
    // Four when nothing else happens; a busy machine tells them apart into some more.
    await Promise.all(workerIds.map(beat));
    expect(ofBeats().length).toBeLessThanOrEqual(20);
    statements.length = 0;
    await Promise.all(workerIds.map(beat));
    expect(ofBeats().length).toBeLessThanOrEqual(20);

    // One after the other, as they come: those of a fifth of a second wait for each other.
    statements.length = 0;
    const beganMs = performance.now();
    const trickling: Promise<unknown>[] = [];
    for (const workerId of workerIds.slice(0, 200)) {
      trickling.push(beat(workerId));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(trickling);
    const gatherings = Math.ceil((performance.now() - beganMs) / 200);
    expect(ofBeats().length).toBeLessThanOrEqual(10 + gatherings);
    // None of them would be, if an index read what a beat changes. Some find their page full, since what
    // somebody may still read stays a little longer: those who beat after that find room again.
    await until('Postgres to have counted', async () => {
      const [row] = await postgres().db.query<{ updated: number; in_place: number }>(
        `select n_tup_upd as updated, n_tup_hot_upd as in_place
         from pg_stat_user_tables where relid = 'sluice.workers'::regclass`,
      );
      if (row !== undefined && row.updated >= 2_200 && row.in_place >= row.updated * 0.8)
        return true;
      await Promise.all(workerIds.map(beat));
      return false;
    });
  });

  it('R-RE6: an hour-long task of a healthy worker is not touched by a thousand sweeps', async () => {
    const clock = new ManualClock(Date.now());
    const { engine, statements } = await open({ sweepIntervalMs: 1, leaseMs: 60_000 }, clock);
    const worker = await TestWorker.register(engine);
    const { taskId } = await engine.submit({ taskType: 'long', timeoutSeconds: 3_700 });
    const task = await worker.takeOne();
    const before = await engine.getTask(taskId, { history: true });
    statements.length = 0;
    for (let part = 1; part <= 100; part++) {
      clock.advance(36_000);
      await worker.beat([task]);
      await until('ten sweeps', () => countSweeps(statements) >= 10 * part, {
        everyMs: 1,
      });
    }
    const after = await engine.getTask(taskId, { history: true });
    const still = { currentStateDurationSeconds: 0, executionDurationSeconds: 0 };
    expect({ ...after, ...still }).toEqual({ ...before, ...still });
    expect(await worker.complete(task)).toMatchObject({ accepted: true });
  });

  it('R-ST3: beats that Postgres kept waiting take nothing back that came to the worker meanwhile', async () => {
    const clock = new ManualClock(Date.now());
    const settings = { heartbeatIntervalMs: 200, leaseMs: 60_000 };
    const { engine, statements } = await open(settings, clock);
    const worker = await TestWorker.register(engine);
    await engine.submit({ taskType: 'noop' });
    const holder = await postgres().open();
    const held = await holder.transaction(async (tx) => {
      await tx.query('select from sluice.workers for update');
      // Sent before the task came, apart from each other, and answered long after it, in any order.
      const stale = [1, 2, 3, 4].map(() => {
        clock.advance(150);
        return worker.beat([]).catch(() => null);
      });
      const task = await worker.takeOne();
      clock.advance(700);
      // From here on what Postgres is asked finds the task with the worker; some may have given up.
      statements.length = 0;
      let areOver = false;
      void Promise.all(stale).then(() => (areOver = true));
      await until('them to ask again', () => statements.some(isBeat) || areOver);
      return { task, stale };
    });
    await Promise.all(held.stale);
    await worker.beat([held.task]);
    expect(await worker.complete(held.task)).toMatchObject({ accepted: true });
  });

  async function register(engine: Engine, count: number): Promise<WorkerId[]> {
    const registered = Array.from({ length: count }, () => engine.register({ capacity: 10 }));
    return (await Promise.all(registered)).map(({ workerId }) => workerId);
  }

  /** So that there is something to read for each. */
  async function holdTen(workerIds: readonly WorkerId[]): Promise<void> {
    const taskIds = Array.from({ length: 10 * workerIds.length }, () => ids.nextTaskId(Date.now()));
    const holders = taskIds.map((_, n) => workerIds[Math.floor(n / 10)]);
    await postgres().db.query(insertHeldSql, [taskIds, holders]);
  }
});

const insertHeldSql = `
insert into sluice.tasks
  (id, queue, task_type, priority, status, created_at, eligible_at, queued_at, assigned_at,
   started_at, lapses_at, timeout_seconds, max_retries, attempt, lease, worker_id)
select id, 'default', 'noop', 1, 'executing', now(), now(), now(), now(), now(), now() + '1 hour',
  3600, 3, 1, gen_random_uuid(), worker_id
from unnest($1::uuid[], $2::uuid[]) as held (id, worker_id)`;

describeOnPostgres('two servers', (server) => {
  it('R-RE6: sweeping the same 10,000 orphans at once recover each of them once', async () => {
    const count = 10_000;
    const options = {
      database: { kind: 'postgres', url: server().url },
      redisUrl: inject('redisUrl'),
      settings: quickTicks,
    } as const;
    await (await openEngine(options)).close();
    const taskIds = Array.from({ length: count }, () => ids.nextTaskId(Date.now()));
    const workerIds = [randomUUID(), randomUUID(), randomUUID()];
    await server().sql(insertHeldSql, [taskIds, taskIds.map((_, n) => workerIds[n % 3])]);
    await server().sql(
      `insert into sluice.task_inputs (task_id, parameters) select unnest($1::uuid[]), '{}'`,
      [taskIds],
    );
    await Promise.all([server().open(options), server().open(options)]);
    const isHeld = async () => {
      const [row] = await server().sql<{ held: boolean }>(
        'select exists (select from sluice.tasks where worker_id is not null) as held',
      );
      return row?.held !== false;
    };
    await until('nobody to hold anything', async () => !(await isHeld()), { deadlineMs: 240_000 });
    const [row] = await server().sql<{ all: number; once: number }>(
      `select count(*)::int as all, count(*) filter (
         where retry_count = 1 and cardinality(past_attempts) = 1
           and past_attempts[1]->>'outcome' = 'lapsed'
       )::int as once from sluice.tasks`,
    );
    expect(row).toEqual({ all: count, once: count });
  });
});

describeOnPostgres('a step of the clock of Postgres', (server) => {
  it('R-HA2: forward by an hour ends no attempt that began before it, and those after it in time', async () => {
    const settings = { leaseMs: 60_000, heartbeatIntervalMs: 200, timeoutGraceMs: 100 };
    const engine = await server().open({ settings: { ...quickTicks, ...settings } });
    const queue = freshQueue();
    const worker = await TestWorker.register(engine, { queues: [queue] });
    const draft = { taskType: 't', queue, maxRetries: 0 };
    const before = await engine.submit({ ...draft, timeoutSeconds: 600 });
    await worker.takeOne();
    // Where all that is written is an hour older, the clock is an hour further.
    await server().sql(
      `update sluice.tasks set lapses_at = lapses_at - interval '1 hour',
         assigned_at = assigned_at - interval '1 hour', started_at = started_at - interval '1 hour'
       where lapses_at is not null;
       update sluice.workers set last_heartbeat_at = last_heartbeat_at - interval '1 hour';
       update sluice.servers set hearing_since = hearing_since - interval '1 hour',
         heard_at = heard_at - interval '1 hour', proven_at = proven_at - interval '1 hour'`,
    );
    await until('the step to be seen', async () => {
      const rows = await server().sql(
        `select from sluice.servers where proven_at < now() - interval '30 minutes'`,
      );
      return rows.length === 0;
    });
    const after = await engine.submit({ ...draft, timeoutSeconds: 1 });
    await worker.takeOne();
    const stop = worker.keepBeating(100);
    await untilStatus(engine, after.taskId, 'dead_letter');
    stop();
    expect((await engine.getTask(before.taskId)).status).toBe('executing');
  });
});
