import { randomUUID } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { Lease, TaskId } from '../../src/domain/ids.js';
import type { Held } from '../../src/protocol/workers-api.js';
import { cancelTasks } from '../../src/store/cancel-tasks.js';
import { findCancellable } from '../../src/store/find-in-bulk.js';
import type { Database } from '../../src/store/database.js';
import { endAttempts } from '../../src/store/end-attempts.js';
import { readLines, wakeDue } from '../../src/store/feed-line.js';
import { completeTasks } from '../../src/store/finish-tasks.js';
import { freeHeldWorkflows, letGoOfCancelled } from '../../src/store/hold-workflows.js';
import { listTasks } from '../../src/store/list-tasks.js';
import { migrate } from '../../src/store/migrate.js';
import { ensurePartitions } from '../../src/store/partitions.js';
import { openPgDatabase } from '../../src/store/pg-database.js';
import { findTask } from '../../src/store/read-tasks.js';
import { releaseStuckWorkflows } from '../../src/store/release-stuck-workflows.js';
import { replayTasks } from '../../src/store/replay-tasks.js';
import { submitTasks } from '../../src/store/submit-tasks.js';
import { beatAll, registerWorker } from '../../src/store/workers.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { explained } from './explained.js';
import {
  backToPending,
  claimOne,
  completionOf,
  newTasks,
  newWorkerId,
  toDeadLetter,
} from './lifecycle.js';

const few = 300;
const many = 20_000;

/** 10,000 rows of each table at most, in the order of their ids. */
const maxListedPages = 12_000;

/** An index of many entries is a level or two deeper, and each look at it reads so many more. */
const deeper = 2.2;

/** The planner knows nothing, or takes every workflow for a short one. */
const statistics = ['none', 'of short workflows alone'] as const;

/**
 * Four kinds of workflows, `size` large: "long" has as many members that wait, "skipped" as many
 * that ended and let it go on, "short-…" are as many with one member each, and "kept-…" as many whose
 * place is kept for a cancelled member.
 */
class Stock {
  readonly database: TestDatabase;
  readonly db: Database;
  readonly workerId = newWorkerId();
  readonly idleWorkerId = newWorkerId();

  private constructor(database: TestDatabase, db: Database) {
    this.database = database;
    this.db = db;
  }

  static async create(size: number, known: (typeof statistics)[number]): Promise<Stock> {
    const database = await createTestDatabase('store');
    const db = await openPgDatabase({ url: database.url });
    await migrate(db);
    await ensurePartitions(db, 2, null);
    const stock = new Stock(database, db);
    await stock.#fill(size, known !== 'none');
    return stock;
  }

  async close(): Promise<void> {
    await this.db.close();
    await this.database.drop();
  }

  /** The head of a workflow, running. */
  async hold(workflowId: string): Promise<Held> {
    const lane = { queue: workflowId, taskType: 'chat', capabilities: [] };
    await wakeDue(this.db, 100, null);
    const from = { eligibleAtMs: 0, seq: 0 };
    const wanted = { window: { lane, priority: 'medium' as const }, from, limit: 1 };
    const [[head] = []] = await readLines(this.db, [wanted], null);
    if (head === undefined) throw new Error(`${workflowId} has no head`);
    return claimOne(this.db, head.taskId, { workerId: this.workerId });
  }

  async pick(where: string): Promise<TaskId> {
    const [row] = await this.db.query<{ id: TaskId }>(
      `select id from sluice.tasks where ${where} order by seq desc limit 1`,
    );
    if (row === undefined) throw new Error(`nothing found: ${where}`);
    return row.id;
  }

  async keptLease(): Promise<Lease> {
    const [row] = await this.db.query<{ held_lease: Lease }>(
      'select held_lease from sluice.workflows where held_lease is not null limit 1',
    );
    if (row === undefined) throw new Error('no place is kept');
    return row.held_lease;
  }

  /** Pages read by all statements of it. */
  async pagesOf(act: (db: Database) => Promise<unknown>): Promise<number> {
    const { db, plans } = explained(this.db);
    await act(db);
    expect(plans.flatMap((plan) => plan.faults)).toEqual([]);
    return plans.reduce((sum, { pages }) => sum + pages, 0);
  }

  async #fill(size: number, isAnalyzed: boolean): Promise<void> {
    await this.db.run(`
      alter table sluice.tasks set (autovacuum_enabled = false);
      alter table sluice.workflows set (autovacuum_enabled = false);
    `);
    for (const workerId of [this.workerId, this.idleWorkerId]) {
      await registerWorker(this.db, workerId, { capacity: 1000 }, null);
    }
    await this.#members(size, `'short-' || n`, { firstIsOut: false, ended: 0 });
    if (isAnalyzed) await this.db.run('analyze sluice.tasks; analyze sluice.workflows');
    await this.#members(size, `'long'`, { firstIsOut: true, ended: 0 });
    await this.#members(size, `'skipped'`, { firstIsOut: true, ended: size - 10 });
    await this.db.query(
      `insert into sluice.workflows
         (id, held_task, held_lease, held_worker_id, held_since, held_until)
       select 'kept-' || n, gen_random_uuid(), gen_random_uuid(), $1, now(), now() + interval '1 hour'
       from generate_series(1, ${size}) n`,
      [this.workerId],
    );
    await this.db.query(`insert into sluice.task_inputs select id, '{}'::json from sluice.tasks`);
  }

  async #members(
    size: number,
    workflowId: string,
    { firstIsOut, ended }: { firstIsOut: boolean; ended: number },
  ): Promise<void> {
    const isOut = firstIsOut ? `n = ${ended} + 1` : 'true';
    await this.db.query(
      `insert into sluice.tasks
         (id, queue, task_type, priority, status, waits_for, created_at, eligible_at, queued_at, ended_at,
          timeout_seconds, max_retries, workflow_id, halts_workflow)
       select
         (lpad(to_hex((extract(epoch from now()) * 1000)::bigint), 12, '0')
           || '7000' || '8000' || substr(md5(random()::text), 1, 12))::uuid,
         case when ${String(firstIsOut)} then ${workflowId} else 'short' end, 'chat', 1,
         case when n <= ${ended} then 'dead_letter' when ${isOut} then 'queued' else 'pending' end,
         case when n <= ${ended} or ${isOut} then null else 'workflow' end,
         now(), now(), case when ${isOut} then now() end, case when n <= ${ended} then now() end, 600, 3, ${workflowId}, n > ${ended}
       from generate_series(1, ${size}) n order by n`,
    );
    await this.db.query(
      `insert into sluice.workflows (id) select ${workflowId} from generate_series(1, ${size}) n
       on conflict do nothing`,
    );
  }
}

type Act = (db: Database) => Promise<unknown>;
type Prepare = (stock: Stock) => Act | Promise<Act>;

const idle = { currentLoad: 0, status: 'active', currentTasks: [] } as const;

const cases: [string, Prepare][] = [
  ['to submit one to', () => (db) => submitTasks(db, newTasks(1, { workflowId: 'long' }), null)],
  ['to submit 50 to', () => (db) => submitTasks(db, newTasks(50, { workflowId: 'long' }), null)],
  [
    'to submit one past 100 % that ended to',
    () => (db) => submitTasks(db, newTasks(1, { workflowId: 'skipped' }), null),
  ],
  [
    'to give back a member of',
    async (stock) => {
      const held = await stock.hold('long');
      return (db) => endAttempts(db, [backToPending(held)], null);
    },
  ],
  [
    'to complete a member of',
    async (stock) => {
      const held = await stock.hold('long');
      return (db) => completeTasks(db, [completionOf(held)], null);
    },
  ],
  [
    'to complete one behind all that ended in',
    async (stock) => {
      const held = await stock.hold('skipped');
      return (db) => completeTasks(db, [completionOf(held)], null);
    },
  ],
  [
    'to give up a member of',
    async (stock) => {
      const held = await stock.hold('skipped');
      return (db) => endAttempts(db, [toDeadLetter(held)], null);
    },
  ],
  [
    'to cancel a member that waits in',
    async (stock) => {
      const taskId = await stock.pick(`workflow_id = 'long' and waits_for = 'workflow'`);
      return (db) => cancelTasks(db, [taskId], null);
    },
  ],
  [
    'to cancel the head of',
    async (stock) => {
      const taskId = await stock.pick(
        `workflow_id = 'long' and (status = 'queued' or waits_for = 'time')`,
      );
      return (db) => cancelTasks(db, [taskId], null);
    },
  ],
  [
    'to replay a member of',
    async (stock) => {
      const taskId = await stock.pick(`workflow_id = 'skipped' and status = 'dead_letter'`);
      return (db) => replayTasks(db, [taskId], {}, null);
    },
  ],
  [
    'to read a member of',
    async (stock) => {
      const taskId = await stock.pick(`workflow_id = 'long' and waits_for = 'workflow'`);
      return (db) => findTask(db, taskId, true, null);
    },
  ],
  [
    'to cancel the only member of one of',
    async (stock) => {
      const taskId = await stock.pick(`workflow_id = 'short-7'`);
      return (db) => cancelTasks(db, [taskId], null);
    },
  ],
  [
    'to find 100 to cancel in',
    () => (db) => findCancellable(db, { workflowId: 'long' }, 100, null),
  ],
  [
    'to find all to cancel of one of',
    () => (db) => findCancellable(db, { workflowId: 'short-9' }, 100, null),
  ],
  ['to look for stuck ones among', () => (db) => releaseStuckWorkflows(db, null, 100, null)],
  ['to free none of the places kept in', () => (db) => freeHeldWorkflows(db, 100, 0, null)],
  [
    'to let go of one place of those kept in',
    async (stock) => {
      const lease = await stock.keptLease();
      return (db) => letGoOfCancelled(db, [lease], null);
    },
  ],
  ['to let go of no place in', () => (db) => letGoOfCancelled(db, [randomUUID() as Lease], null)],
  [
    'to hear a worker that keeps no place in',
    ({ idleWorkerId }) =>
      (db) =>
        beatAll(db, [{ workerId: idleWorkerId, heartbeat: idle }], null),
  ],
];

describe.each(statistics)(`R-WO2: workflows of ${few} and of ${many}, statistics: %s`, (known) => {
  let small: Stock;
  let large: Stock;

  beforeAll(async () => {
    small = await Stock.create(few, known);
    large = await Stock.create(many, known);
  });
  afterAll(() => Promise.all([small.close(), large.close()]));

  it.each(cases)('%s many reads as much as of few', async (_name, prepare) => {
    const ofFew = await small.pagesOf(await prepare(small));
    const ofMany = await large.pagesOf(await prepare(large));
    expect(ofMany).toBeLessThanOrEqual(ofFew * deeper);
  });

  it('a page of the list reads a bounded stretch', async () => {
    const pages = await large.pagesOf((db) => listTasks(db, { workflowId: 'long' }, {}, null));
    expect(pages).toBeLessThan(maxListedPages);
  });
});
