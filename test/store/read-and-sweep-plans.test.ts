import { randomUUID } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { Lease, TaskId, WorkerId } from '../../src/domain/ids.js';
import { readOldest, readScheduledLateness } from '../../src/store/alert-readings.js';
import { findLevels, saveLevels } from '../../src/store/bucket-levels.js';
import { cancelTasks } from '../../src/store/cancel-tasks.js';
import { countTasks } from '../../src/store/count-tasks.js';
import { findCancellable, findReplayable, findWaiting } from '../../src/store/find-in-bulk.js';
import { changeTask } from '../../src/store/change-task.js';
import type { Database } from '../../src/store/database.js';
import { findDeadLetters, listDeadLetters } from '../../src/store/dead-letters.js';
import { expireTasks } from '../../src/store/expire-tasks.js';
import { findNextDue } from '../../src/store/feed-line.js';
import { findLeased } from '../../src/store/find-attempts.js';
import { findLanes } from '../../src/store/find-lanes.js';
import { findNextInLine } from '../../src/store/find-next-in-line.js';
import { findHeads } from '../../src/store/find-heads.js';
import { freeHeldWorkflows, letGoOfCancelled } from '../../src/store/hold-workflows.js';
import { findLinePosition } from '../../src/store/find-line-position.js';
import { findInstallationId } from '../../src/store/installation.js';
import { findLimitsChanged } from '../../src/store/limits.js';
import { listTasks } from '../../src/store/list-tasks.js';
import { findWindows, measureStretches } from '../../src/store/line-stretches.js';
import { migrate } from '../../src/store/migrate.js';
import { encodeCursor } from '../../src/store/paging.js';
import { ensurePartitions } from '../../src/store/partitions.js';
import { openPgDatabase } from '../../src/store/pg-database.js';
import { findConfigured } from '../../src/store/queues.js';
import { findStates, findTask, findWaitsFor } from '../../src/store/read-tasks.js';
import { releaseStuckWorkflows } from '../../src/store/release-stuck-workflows.js';
import { replayTasks } from '../../src/store/replay-tasks.js';
import { countHeldAndEnded, countScheduled } from '../../src/store/statistics.js';
import {
  buryLapsedWorkers,
  findHeldBy,
  findOrphans,
  findOverdue,
  listRunning,
} from '../../src/store/sweep-attempts.js';
import { findLivingHolders } from '../../src/store/task-types.js';
import { findWaitingQueues } from '../../src/store/waiting-queues.js';
import { proveHearing } from '../../src/store/hearing.js';
import { lookForRepairs } from '../../src/store/sweep-look.js';
import { adoptTasks, beatAll, purgeWorkers, registerWorker } from '../../src/store/workers.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { explained } from './explained.js';
import { atSecond, zero } from './seed.js';

const waiting = 100_000;
const batch = 1000;
const ended = 20_000;
const living = randomUUID() as WorkerId;
const dead = randomUUID() as WorkerId;

/** Far below the 3,000 pages and more of the tasks; a page of 50 tasks reads 6 or 7 for each. */
const little = 600;
/** A filter reads 10,000 rows of each table, in the order of their ids. */
const bounded = 25_000;
/** Besides, the parameters of each. */
const searched = 100_000;

/** The first id of the day in the id, and n: in the order of n. */
const idOf = (n: string) =>
  `(lpad(to_hex($1::bigint), 12, '0') || '7000' || '8000' || lpad(to_hex(${n}), 12, '0'))::uuid`;

describe('R-ST1: plans on 100,000 tasks that were never analyzed', () => {
  let database: TestDatabase;
  let db: Database;
  let middle: TaskId;
  let held: TaskId;
  let letter: TaskId;
  let cancelled: TaskId;

  beforeAll(async () => {
    database = await createTestDatabase('store');
    db = await openPgDatabase({ url: database.url });
    await migrate(db);
    await ensurePartitions(db, 2, null);
    await seed();
    middle = await pick(`select id from sluice.tasks order by id offset ${waiting / 2} limit 1`);
    held = await pick(`select id from sluice.tasks where worker_id is not null limit 1`);
    letter = await pick(`select id from sluice.tasks where status = 'dead_letter' limit 1`);
    cancelled = await pick(`select id from sluice.task_history where status = 'cancelled' limit 1`);
  });
  afterAll(async () => {
    await db.close();
    await database.drop();
  });

  const idle = { currentLoad: 0, status: 'active', currentTasks: [] } as const;
  const beatsOfMany = [living, dead, ...Array.from({ length: 50 }, () => randomUUID())].map(
    (id) => ({
      workerId: id as WorkerId,
      heartbeat: idle,
    }),
  );
  const leaseMs = 3_600_000;
  const burial = { serverId: living, leaseMs, except: [], steadyMs: Infinity };
  const proof = { serverId: living, leaseMs, continues: true };
  const terms = {
    serverId: living,
    graceMs: 0,
    leaseMs,
    heardForMs: 0,
    undeliveredMs: 3_600_000,
    steadyMs: Infinity,
  };
  const spans = [
    { low: 'a', high: 'a~' },
    { low: 'q', high: 'q~' },
  ];
  const beforeHigh = { after: null, priority: 'high' } as const;
  const cases: [string, number, (db: Database) => Promise<unknown>][] = [
    ['the oldest of each priority', little, (on) => readOldest(on, zero)],
    ['what is late', little, (on) => readScheduledLateness(on, zero)],
    ['a heartbeat', little, (on) => beatAll(on, [{ workerId: living, heartbeat: idle }], zero)],
    ['heartbeats of many', little, (on) => beatAll(on, beatsOfMany, zero)],
    ['the look of a sweep', little, (on) => lookForRepairs(on, 3_600_000, zero)],
    ['the look of the feeder', little, (on) => findNextDue(on, zero)],
    [
      'adopting',
      little,
      (on) => adoptTasks(on, living, [{ taskId: held, lease: randomUUID() as string as Lease }]),
    ],
    ['burying workers', little, (on) => buryLapsedWorkers(on, burial, zero)],
    ['proving that heartbeats can be written', little, (on) => proveHearing(on, proof, zero)],
    ['purging workers', little, (on) => purgeWorkers(on, 0, zero)],
    ['orphans', little, (on) => findOrphans(on, 100)],
    ['overdue attempts', little, (on) => findOverdue(on, 100, terms, zero)],
    ['what a worker holds', little, (on) => findHeldBy(on, living, 100)],
    ['all that runs', little, (on) => listRunning(on, null)],
    ['expiry', little, (on) => expireTasks(on, 100, zero)],
    ['stuck workflows', little, (on) => releaseStuckWorkflows(on, null, 20, zero)],
    ['held workflows', little, (on) => freeHeldWorkflows(on, 100, 0, zero)],
    ['letting go', little, (on) => letGoOfCancelled(on, [randomUUID() as Lease], zero)],
    ['get', little, (on) => findTask(on, middle, true, zero)],
    ['the heads of a queue', little, (on) => findHeads(on, 'q1', 1_000, zero)],
    ['the next in line', 2_500, (on) => findNextInLine(on, 'q1', 1_000, zero)],
    ['the lanes of queues', little, (on) => findLanes(on, ['q1', 'q2', 'none'], 20)],
    ['the queues that wait', little, (on) => findWaitingQueues(on, spans, 1_000)],
    ['the leased', little, (on) => findLeased(on, [middle, held, cancelled])],
    ['states', little, (on) => findStates(on, [middle, held, cancelled])],
    ['what a task waits for', little, (on) => findWaitsFor(on, middle)],
    ['a page of all', little, (on) => listTasks(on, {}, { limit: 20 }, zero)],
    ['a later page', little, (on) => listTasks(on, {}, { cursor: encodeCursor(middle) }, zero)],
    ['the running', little, (on) => listTasks(on, { status: 'executing' }, {}, zero)],
    ['the failed', little, (on) => listTasks(on, { status: 'failed' }, {}, zero)],
    ['the completed', bounded, (on) => listTasks(on, { status: 'completed' }, {}, zero)],
    ['a rare queue', bounded, (on) => listTasks(on, { queue: 'none' }, {}, zero)],
    ['a rare tag', bounded, (on) => listTasks(on, { tag: 'none' }, {}, zero)],
    ['cancellable', bounded, (on) => findCancellable(on, { tag: 'none' }, 100, null)],
    ['replayable', little, (on) => findReplayable(on, { tag: 'none' }, 100, null)],
    ['to re-prioritise', bounded, (on) => findWaiting(on, { tag: 'none' }, 100, beforeHigh)],
    ['counting a rare tag', bounded, (on) => countTasks(on, { tag: 'none' }, undefined)],
    ['counting the failed', little, (on) => countTasks(on, { status: 'failed' }, undefined)],
    ['counting what runs', little, (on) => countTasks(on, { status: 'executing' }, 'cancel')],
    ['searching for a text', searched, (on) => listTasks(on, { text: 'needle' }, {}, zero)],
    ['change', little, (on) => changeTask(on, middle, { priority: 'low' }, zero)],
    ['cancel', little, (on) => cancelTasks(on, [middle, held], zero)],
    ['replay', little, (on) => replayTasks(on, [letter, cancelled], {}, zero)],
    ['dead letters', little, (on) => listDeadLetters(on, { code: 'BROKEN' }, {}, zero)],
    ['dead letters to replay', little, (on) => findDeadLetters(on, { queue: 'q1' }, 10)],
    ['scheduled', little, (on) => countScheduled(on)],
    ['place in line', little, (on) => findLinePosition(on, middle, 10)],
  ];

  it.each(cases)('%s goes by an index, and reads at most %d pages', async (_name, pages, act) => {
    const { db: watched, plans } = explained(db);
    await act(watched);
    expect(plans.length).toBeGreaterThan(0);
    for (const plan of plans) {
      const whole = plan.scans.filter((scan) => scan.startsWith('Seq Scan on task'));
      expect(whole, plan.statement).toEqual([]);
      expect(plan.pages, plan.scans.join('\n')).toBeLessThan(pages);
    }
  });

  it.each(['for its parameters', 'for any parameters'] as const)(
    'R-AD6: the queues that wait are found by one look into the line each, planned %s',
    async (made) => {
      const { db: watched, plans } = explained(db, made);
      expect(await findWaitingQueues(watched, spans, 3)).toEqual(['q0', 'q1', 'q2']);
      const [plan] = plans;
      expect(plan?.faults).toEqual([]);
      expect(plan?.scans.filter((scan) => scan.includes('tasks'))).toEqual([
        'Index Only Scan on tasks by tasks_line',
        'Index Only Scan on tasks by tasks_line',
      ]);
      expect(plan?.pages).toBeLessThan(30);
    },
  );

  it('R-HA3: what a worker says of results that it cannot deliver is looked up, not searched for each attempt', async () => {
    const rows = await db.query<{ id: TaskId }>(
      'select id from sluice.tasks where worker_id = $1::uuid',
      [living],
    );
    const undelivered = rows.map(({ id }) => id);
    await beatAll(db, [{ workerId: living, heartbeat: { ...idle, undelivered } }], atSecond(1_000));
    const { db: watched, plans } = explained(db);
    expect(await findOverdue(watched, 100, terms, atSecond(1_000))).toEqual([]);
    expect(plans.map(({ faults }) => faults)).toEqual([[]]);
    expect(plans[0]?.filters.join('\n')).toMatch(/hashed SubPlan/);
    await beatAll(db, [{ workerId: living, heartbeat: idle }], zero);
  });

  it('R-HA3: the task types of living workers are looked up, not compared with each that is told', async () => {
    const { db: watched, plans } = explained(db);
    await findLivingHolders(watched, [{ name: 'chat', version: '1' }]);
    expect(plans[0]?.filters.join('\n')).toMatch(/= ANY \('\{chat\}'/);
  });

  it('R-OB1: counting a stretch of the line reads what it counts, by the index of the line', async () => {
    const windows = await findWindows(db, 10);
    const { db: watched, plans } = explained(db);
    const from = { eligibleAtMs: Number.NEGATIVE_INFINITY, seq: 0 };
    const wanted = windows.slice(0, 1).map((window) => ({ window, from, to: null }));
    const [measured] = await measureStretches(watched, wanted, { marks: 1, markEvery: 500 });
    expect(measured).toMatchObject({ count: 500, isCut: true });
    const scans = plans.flatMap((plan) => plan.scans).filter((scan) => scan.includes(' on tasks'));
    expect(scans.every((scan) => scan.includes('tasks_line'))).toBe(true);
    expect(plans[0]?.pages).toBeLessThan(little);
  });

  it('R-OB1: the windows that have a line are found by a look for each', async () => {
    const { db: watched, plans } = explained(db);
    expect(await findWindows(watched, 10)).not.toEqual([]);
    expect(plans[0]?.pages).toBeLessThan(little);
  });

  it('R-OB1: tasks by state are counted by indexes', async () => {
    const { db: watched, plans } = explained(db);
    await countHeldAndEnded(watched);
    const scans = plans.flatMap((plan) => plan.scans).filter((scan) => scan.includes(' on tasks'));
    expect(scans.filter((scan) => scan.startsWith('Seq Scan'))).toEqual([]);
    expect(scans.length).toBeGreaterThan(0);
  });

  it.each([
    ['cancel', (on: Database, ids: TaskId[]) => cancelTasks(on, ids, zero)],
    ['replay', (on: Database, ids: TaskId[]) => replayTasks(on, ids, {}, zero)],
    ['expire', (on: Database) => expireTasks(on, batch, atSecond(batch))],
    ['find the leases of', (on: Database, ids: TaskId[]) => findLeased(on, ids)],
    ['read the states of', (on: Database, ids: TaskId[]) => findStates(on, ids)],
  ])(
    'to %s a batch looks at its own tasks, and at each of them a few times',
    async (_name, act) => {
      const rows = await db.query<{ id: TaskId }>(
        `(select id from sluice.tasks where status = 'dead_letter' limit 90)
       union all
       (select id from sluice.tasks where workflow_id is null order by id limit ${batch - 90})`,
      );
      const { db: watched, plans } = explained(db);
      await act(
        watched,
        rows.map((row) => row.id),
      );
      expect(plans.length).toBeGreaterThan(0);
      for (const plan of plans) {
        expect(plan.visited, plan.scans.join('\n')).toBeLessThan(4 * batch);
      }
    },
  );

  const small: [string, string, (db: Database) => Promise<unknown>][] = [
    ['changed limits', 'limits_changed', (on) => findLimitsChanged(on, atSecond(-60))],
    ['changed queues', 'queues_changed', (on) => findConfigured(on, atSecond(-60))],
    ['the installation', 'installation_pkey', (on) => findInstallationId(on)],
    ['levels, by bucket,', 'bucket_levels_pkey', (on) => findLevels(on, zero)],
  ];

  it.each(small)('finding %s goes by %s', async (_name, index, act) => {
    const { db: watched, plans } = explained(db);
    await act(watched);
    const scans = plans.flatMap((plan) => plan.scans);
    expect(scans.filter((scan) => scan.includes(index))).not.toEqual([]);
    expect(scans.filter((scan) => scan.startsWith('Seq Scan'))).toEqual([]);
  });

  it('R-CH4: levels are saved without reading others', async () => {
    const levels = Array.from({ length: 5_000 }, (_, n) => ({ bucket: `b${n}`, tokens: 1 }));
    await saveLevels(db, levels, 0, false, zero);
    const { db: watched, plans } = explained(db);
    await saveLevels(watched, levels.slice(0, 10), 0, false, atSecond(1));
    expect(plans.flatMap((plan) => plan.scans)).toEqual([]);
    for (const plan of plans) expect(plan.pages).toBeLessThan(little);
  });

  async function pick(statement: string): Promise<TaskId> {
    const [row] = await db.query<{ id: TaskId }>(statement);
    if (row === undefined) throw new Error(`nothing found: ${statement}`);
    return row.id;
  }

  /** 100,000 in line or blocked, a few hundred held, ended or timed, 20,000 in history. */
  async function seed(): Promise<void> {
    const all = ['tasks', 'workers', 'workflows'].map(
      (table) => `alter table sluice.${table} set (autovacuum_enabled = false);`,
    );
    await db.run(all.join('\n'));
    await registerWorker(db, living, { capacity: 1000 }, zero);
    await registerWorker(db, dead, { capacity: 1000 }, zero);
    await db.query(`update sluice.workers set status = 'dead' where id = $1`, [dead]);
    const ms = zero.getTime();
    await db.query(
      `insert into sluice.tasks
         (id, queue, task_type, priority, status, waits_for, created_at, eligible_at, queued_at,
          dispatch_deadline_seconds, expires_at, timeout_seconds, max_retries, workflow_id, tags)
       select ${idOf('n')}, 'q' || n % 5, 'chat', n % 3,
         case when n % 10 = 1 then 'pending' else 'queued' end,
         case when n % 10 = 1 then 'workflow' end,
         $2, $2, case when n % 10 <> 1 then $2::timestamptz end, 60,
         $2::timestamptz + n * interval '1 second', 600, 3,
         case when n % 10 = 1 then 'w' || n % 100 end, array['t' || n % 7]
       from generate_series(1, ${waiting}) n`,
      [ms, zero],
    );
    await db.query(
      `insert into sluice.tasks
         (id, queue, task_type, priority, status, created_at, eligible_at, queued_at, assigned_at,
          started_at, lapses_at, timeout_seconds, max_retries, attempt, lease, worker_id)
       select ${idOf(`${waiting} + n`)}, 'q1', 'chat', 1, 'executing', $2, $2, $2, $2, $2,
         $2::timestamptz + (n - 100) * interval '1 second', 600, 3, 1, gen_random_uuid(),
         case when n % 2 = 0 then $3::uuid else $4::uuid end
       from generate_series(1, 200) n`,
      [ms, zero, living, dead],
    );
    await db.query(
      `insert into sluice.tasks
         (id, queue, task_type, priority, status, created_at, eligible_at, ended_at,
          timeout_seconds, max_retries, error)
       select ${idOf(`${waiting} + 1000 + n`)}, 'q1', 'chat', 1,
         case when n % 2 = 0 then 'dead_letter' else 'failed' end, $2, $2, $2, 600, 3,
         '{"code":"BROKEN","message":"it broke","retriable":true}'
       from generate_series(1, 200) n`,
      [ms, zero],
    );
    await db.query(
      `insert into sluice.task_history
         (id, seq, queue, task_type, capabilities, priority, status, created_at, eligible_at,
          ended_at, timeout_seconds, max_retries, retry_count, attempt, deferrals, returns,
          halts_workflow, tags, past_attempts)
       select ${idOf(`${waiting} + 2000 + n`)}, n, 'q1', 'chat', '{}', 1,
         case when n % 2 = 0 then 'completed' else 'cancelled' end, $2, $2,
         $2::timestamptz - n % 3 * interval '1 day', 600, 3, 0, 1, 0, 0, true, '{}', '{}'
       from generate_series(1, ${ended}) n`,
      [ms, zero],
    );
    await db.query(
      `insert into sluice.task_inputs (task_id, parameters)
       select id, '{"n":1}'::json from sluice.tasks union all
       select id, '{"n":1}'::json from sluice.task_history`,
    );
    await db.query(
      `insert into sluice.workflows (id)
       select distinct workflow_id from sluice.tasks where workflow_id is not null`,
    );
  }
});
