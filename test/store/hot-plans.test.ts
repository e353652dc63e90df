import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import type { Lease, TaskId } from '../../src/domain/ids.js';
import type { Held } from '../../src/protocol/workers-api.js';
import { claimTasks, type Claim } from '../../src/store/claim-tasks.js';
import type { Database } from '../../src/store/database.js';
import { endAttempts } from '../../src/store/end-attempts.js';
import { readLines, wakeDue, type WantedFromLine } from '../../src/store/feed-line.js';
import { findAttempts, findLeased, findSettled } from '../../src/store/find-attempts.js';
import { completeTasks, type Completion, type KnownAttempt } from '../../src/store/finish-tasks.js';
import { migrate } from '../../src/store/migrate.js';
import { ensurePartitions } from '../../src/store/partitions.js';
import { openPgDatabase } from '../../src/store/pg-database.js';
import { recordProgress, startTasks } from '../../src/store/start-tasks.js';
import type { NewClaim, NewTask } from '../../src/store/new-task.js';
import { submitTasks } from '../../src/store/submit-tasks.js';
import { findWindows, walkQueued } from '../../src/store/walk-line.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { explained } from './explained.js';
import {
  backToPending,
  claimOf,
  completionOf,
  knownCompletionOf,
  knownTask,
  newKey,
  newTask,
  newTasks,
  newWorkerId,
  submitKnown,
  toDeadLetter,
} from './lifecycle.js';

const many = 100_000;
const batch = 200;

interface Stock {
  readonly queued: TaskId[];
  readonly known: Claim[];
  readonly held: Held[];
  readonly running: Completion[];
  readonly members: Held[];
}

/** Each of them looks at a row of the tasks a few times: to find it, to write it, to tell of it. */
const looksPerTask = 6;

type Case<Given extends unknown[]> = [string, (db: Database, ...given: Given) => Promise<unknown>];

const cases: Case<[]>[] = [
  ['submit', (db) => submitTasks(db, newTasks(batch), null)],
  ['submit what is claimed', (db) => submitTasks(db, claimed(), null)],
  ['submit with keys', (db) => submitTasks(db, keyed(crypto.randomUUID()), null)],
  [
    'submit with keys that are taken',
    async (db) => {
      const tasks = keyed(crypto.randomUUID());
      await submitTasks(db, tasks, null);
      await submitTasks(db, withNewIds(tasks), null);
    },
  ],
  ['submit to workflows', (db) => submitTasks(db, membersOf(20), null)],
  ['feed', (db) => readLines(db, lines(0), null)],
  ['feed with what is known', (db) => readLines(db, lines(0), null, 1_000)],
  ['feed the end of a line', (db) => readLines(db, lines(Date.now() + 60_000), null)],
  ['wake', (db) => wakeDue(db, batch, null)],
  ['find the windows', (db) => findWindows(db, batch, null)],
  ['walk', (db) => walkQueued(db, null, batch, null)],
];

const casesOnStock: Case<[Stock]>[] = [
  [
    'claim',
    (db, { queued }) =>
      claimTasks(
        db,
        queued.map((id) => claimOf(id)),
        0,
        30_000,
        null,
      ),
  ],
  ['claim what is known', (db, { known }) => claimTasks(db, known, 0, 30_000, null)],
  ['start', (db, { held }) => startTasks(db, held, null)],
  [
    'progress',
    (db, { held }) =>
      recordProgress(
        db,
        held.map((item) => ({ ...item, percent: 50, message: null })),
      ),
  ],
  ['complete', (db, { held }) => completeTasks(db, held.map(completed), null)],
  ['complete what is known', (db, { running }) => completeTasks(db, running, null)],
  ['complete members', (db, { members }) => completeTasks(db, members.map(completed), null)],
  ['complete with lost leases', (db, { held }) => completeTasks(db, held.map(lost), null)],
  [
    'retry',
    (db, { held }) =>
      endAttempts(
        db,
        held.map((item) => backToPending(item)),
        null,
      ),
  ],
  ['give up', (db, { held }) => endAttempts(db, held.map(toDeadLetter), null)],
  ['give up members', (db, { members }) => endAttempts(db, members.map(toDeadLetter), null)],
  ['find attempts', (db, { held }) => findAttempts(db, held)],
  ['find leased', (db, { held }) => findLeased(db, idsOf(held))],
  ['find settled', (db, { held }) => findSettled(db, held)],
];

interface Shape {
  readonly name: string;
  readonly isEmpty: boolean;
  readonly prepare: (db: Database) => Promise<void>;
}

/** Statistics as they are when it matters: none, of another time, or of what is gone. */
const shapes: Shape[] = [
  { name: 'no tasks, never analyzed', isEmpty: true, prepare: () => Promise.resolve() },
  { name: 'no tasks, analyzed', isEmpty: true, prepare: analyze },
  { name: '100,000 tasks, never analyzed', isEmpty: false, prepare: fill },
  {
    name: '100,000 tasks, analyzed while there were none',
    isEmpty: false,
    prepare: async (db) => {
      await analyze(db);
      await fill(db);
    },
  },
  {
    name: '100,000 tasks, analyzed, then deleted',
    isEmpty: false,
    prepare: async (db) => {
      await fill(db);
      await analyze(db);
      await db.run('delete from sluice.tasks; delete from sluice.task_inputs;');
    },
  },
];

describe.each(shapes)('R-ST1: on $name', ({ isEmpty, prepare }) => {
  let database: TestDatabase;
  let db: Database;

  beforeAll(async () => {
    database = await createTestDatabase('store');
    db = await openPgDatabase({ url: database.url });
    await migrate(db);
    await ensurePartitions(db, 2, null);
    await db.run('alter table sluice.tasks set (autovacuum_enabled = off)');
    await prepare(db);
  });
  afterAll(async () => {
    await db.close();
    await database.drop();
  });
  beforeEach(async () => {
    if (!isEmpty || !(await hasTasks(db))) return;
    await db.run('truncate sluice.tasks, sluice.task_inputs, sluice.idempotency_keys');
    await prepare(db);
  });
  const takeStock = async () => (isEmpty ? nothing() : stockOf(db));

  describe.each(['for its parameters', 'for any parameters'] as const)('a plan %s', (made) => {
    const looksAtItsOwn = async (act: (watched: Database) => Promise<unknown>) => {
      const { db: watched, plans } = explained(db, made);
      await act(watched);
      expect(plans.length).toBeGreaterThan(0);
      for (const plan of plans) {
        expect(plan.faults, plan.statement).toEqual([]);
        expect(plan.visited, plan.statement).toBeLessThan(looksPerTask * batch);
      }
    };

    it.each(cases)('to %s looks at its own tasks only', (_name, act) => looksAtItsOwn(act));

    it.each(casesOnStock)('to %s looks at its own tasks only', async (_name, act) => {
      const stock = await takeStock();
      await looksAtItsOwn((watched) => act(watched, stock));
    });

    it('a claim looks into one partition of the inputs', async () => {
      const task = newTask();
      await submitTasks(db, [task], null);
      const { db: watched, plans } = explained(db, made);
      await claimTasks(watched, [claimOf(task.taskId)], 0, 30_000, null);
      expect(plans.flatMap((plan) => plan.partitions)).toHaveLength(1);
    });

    it('R-ST1: a claim of what is known looks into no partition of the inputs', async () => {
      const claims = await submitKnown(db, newTasks(batch));
      const { db: watched, plans } = explained(db, made);
      expect(await claimTasks(watched, claims, 0, 30_000, null)).toHaveLength(batch);
      expect(plans.map((plan) => plan.partitions)).toEqual([[]]);
    });

    it('R-CH4: a claim of another generation looks at no task', async () => {
      const stock = await takeStock();
      const { db: watched, plans } = explained(db, made);
      const claims = stock.queued.map((id) => claimOf(id));
      expect(await claimTasks(watched, claims, 1, 30_000, null)).toEqual([]);
      expect(plans.map((plan) => plan.visited)).toEqual([0]);
      expect(plans.flatMap((plan) => plan.partitions)).toEqual([]);
    });

    it('R-CH4: nor does one of what is known', async () => {
      const { known } = await takeStock();
      const { db: watched, plans } = explained(db, made);
      expect(await claimTasks(watched, known, 1, 30_000, null)).toEqual([]);
      expect(new Set(plans.map((plan) => plan.visited))).toEqual(new Set([0]));
      expect(plans.flatMap((plan) => plan.partitions)).toEqual([]);
    });
  });
});

async function hasTasks(db: Database): Promise<boolean> {
  return (await db.query('select from sluice.tasks limit 1')).length > 0;
}

async function analyze(db: Database): Promise<void> {
  await db.run('vacuum analyze sluice.tasks');
}

/** In five queues, in all states: queued, scheduled, running and behind a workflow. */
async function fill(db: Database): Promise<void> {
  await db.query(
    `insert into sluice.tasks
       (id, queue, task_type, priority, status, waits_for, created_at, eligible_at, run_at,
        queued_at, assigned_at, started_at, lapses_at, lease, worker_id, workflow_id,
        timeout_seconds, max_retries)
     select
       (lpad(to_hex((extract(epoch from now()) * 1000)::bigint), 12, '0')
         || '7000' || '8000' || lpad(to_hex(n), 12, '0'))::uuid,
       'q' || n % 5, 'chat', n % 3, status,
       case when status = 'pending' then waits_for end,
       now(), now(), case when waits_for = 'time' then now() + n * interval '1 second' end,
       case when status <> 'pending' then now() end,
       case when status = 'executing' then now() end,
       case when status = 'executing' then now() end,
       case when status = 'executing' then now() + interval '1 hour' end,
       case when status = 'executing' then gen_random_uuid() end,
       case when status = 'executing' then gen_random_uuid() end,
       case when status = 'pending' and waits_for = 'workflow' then 'w' || n % 1000 end,
       600, 3
     from generate_series(1, ${many}) n,
       lateral (select (array['pending', 'queued', 'executing'])[1 + n % 7 % 3] as status) as one,
       lateral (select (array['time', 'workflow'])[1 + n % 11 % 2] as waits_for) as other`,
  );
}

async function stockOf(db: Database): Promise<Stock> {
  const tasks = newTasks(2 * batch);
  const firsts = Array.from({ length: batch }, () =>
    newTask({ workflowId: crypto.randomUUID(), haltsWorkflow: false, queue: 'members' }),
  );
  const seconds = firsts.map(({ workflowId }) => newTask({ workflowId }));
  await submitTasks(db, [...tasks, ...firsts, ...seconds], null);
  await db.query(
    `update sluice.tasks set status = 'queued', waits_for = null, queued_at = now()
     where id = any($1::uuid[])`,
    [firsts.map((task) => task.taskId)],
  );
  const known = await submitKnown(db, newTasks(batch));
  const queued = tasks.slice(batch).map((task) => task.taskId);
  const claims = [...tasks.slice(0, batch), ...firsts].map((task) => claimOf(task.taskId));
  const held = await claimTasks(db, claims, 0, 30_000, null);
  expect(held).toHaveLength(2 * batch);
  const running = held.slice(0, batch).map((row) => knownCompletionOf(row));
  return { queued, known, held: held.slice(0, batch), running, members: held.slice(batch) };
}

function nothing(): Stock {
  const tasks = newTasks(batch);
  const held = tasks.map(({ taskId }) => ({ taskId, lease: crypto.randomUUID() as Lease }));
  const known = tasks.map((task) =>
    claimOf(task.taskId, { known: knownTask(task, { eligibleAtMs: Date.now() }) }),
  );
  const running = held.map((item) => completionOf(item, { known: someAttempt() }));
  return { queued: held.map((item) => item.taskId), known, held, running, members: held };
}

function someAttempt(): KnownAttempt {
  return {
    lane: { queue: 'default', taskType: 'chat', capabilities: [] },
    priority: 'medium',
    cost: {},
    workerId: newWorkerId(),
    attempt: 1,
    trace: null,
    startedAtMs: Date.now(),
  };
}

function idsOf(held: readonly Held[]): TaskId[] {
  return held.map((item) => item.taskId);
}

/** Every other one. */
function claimed(): NewTask[] {
  return newTasks(batch).map((task, n) => (n % 2 === 0 ? task : { ...task, claim: newClaim() }));
}

function newClaim(): NewClaim {
  const lease = crypto.randomUUID() as Lease;
  return { workerId: newWorkerId(), lease, start: true, generation: 0, unstartedMs: 30_000 };
}

function keyed(name: string): NewTask[] {
  return Array.from({ length: batch }, (_, n) => newTask({ idempotency: newKey(`${name} ${n}`) }));
}

function withNewIds(tasks: readonly NewTask[]): NewTask[] {
  return tasks.map(({ idempotency }) => newTask({ idempotency }));
}

function membersOf(workflows: number): NewTask[] {
  return Array.from({ length: batch }, (_, n) => newTask({ workflowId: `new ${n % workflows}` }));
}

function completed(held: Held): Completion {
  return completionOf(held, { resultJson: '{"ok":true}' });
}

function lost(held: Held): Completion {
  return completionOf({ taskId: held.taskId, lease: crypto.randomUUID() as Lease });
}

function lines(eligibleAtMs: number): WantedFromLine[] {
  return [0, 1, 2, 3, 4].map((n) => ({
    window: {
      lane: { queue: `q${n}`, taskType: 'chat', capabilities: [] },
      priority: 'medium',
    },
    from: { eligibleAtMs, seq: 0 },
    limit: batch / 5,
  }));
}
