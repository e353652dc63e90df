import { expect, it } from 'vitest';

import {
  backToPending,
  claimOf,
  claimOne,
  newTask,
  newTaskId,
  newTasks,
  newLease,
  newWorkerId,
  rowOf,
  submitKnown,
  type Row,
} from '../../test/store/lifecycle.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import { Gate } from '../../test/support/gate.js';
import type { TaskId } from '../domain/ids.js';
import { changeTask } from './change-task.js';
import { claimTasks, type Claim, type ClaimedRow } from './claim-tasks.js';
import type { Instant, Queryable } from './database.js';
import { endAttempts } from './end-attempts.js';
import { wakeDue } from './feed-line.js';
import { beginGeneration } from './generation.js';
import type { NewTask } from './new-task.js';

const now = new Date();
const later = (ms: number): Date => new Date(now.getTime() + ms);

const rich: Partial<NewTask> = {
  queue: 'gpt',
  taskType: 'chat/v1',
  capabilities: ['gpu'],
  priority: 'high',
  parametersJson: '{"b":1,"a":"\\u0000 \\ud800","n":1e400,"deep":{"list":[1,null]}}',
  timeoutSeconds: 61,
  costJson: '{"tokens":5,"images":0.25}',
  trace: 'trace',
};

describeOnEveryDatabase('claimTasks of what is known', (db) => {
  it.each([
    ['with everything', rich],
    ['with nothing but what it must have', {}],
    ['with a deadline', { dispatchDeadlineSeconds: 60 }],
  ])('R-ST1: answers and writes what it does of what is not, of a task %s', async (_, changes) => {
    const workerId = newWorkerId();
    const tasks = newTasks(2, changes);
    const [one, other] = await submitKnown(db(), tasks, now);
    if (one === undefined || other === undefined) throw new Error('no tasks');
    const known = await claimOne(db(), one.taskId, { ...one, workerId }, later(1_234));
    const read = await claimOne(db(), other.taskId, { workerId }, later(1_234));
    const { taskId, lease, ...answer } = known;
    expect({ ...answer, taskId: other.taskId, lease: read.lease }).toEqual(read);
    expect(taskId).toBe(one.taskId);

    const [row, readRow] = [await rowOf(db(), taskId), await rowOf(db(), other.taskId)];
    expect(withoutNames(row)).toEqual(withoutNames(readRow));
    expect(row).toMatchObject({
      id: taskId,
      lease,
      status: 'executing',
      worker_id: workerId,
      attempt: 1,
      assigned_at: later(1_234),
      started_at: later(1_234),
      lapses_at: known.lapsesAt,
    });
  });

  it('R-HA3: ends with the task that takes it past its bytes; the rest stays queued', async () => {
    const tasks = newTasks(60, { parametersJson: `{"text":"${'x'.repeat(989)}"}` });
    const known = await submitKnown(db(), tasks, now);
    const claims = known.map((one) => claimOf(one.taskId, one));
    const claimed = await claimTasks(db(), claims, 0, 30_000, now, 54_500);
    expect(claimed.map(({ taskId }) => taskId)).toEqual(
      tasks.slice(0, 55).map(({ taskId }) => taskId),
    );
    const rest = await claimTasks(db(), claims.slice(55), 0, 30_000, now, 1);
    expect(rest).toHaveLength(1);
  });

  it('R-ST1: by the clock of the database, it waits and lapses as one that is not known', async () => {
    const workerId = newWorkerId();
    const tasks = newTasks(2, rich);
    const [one, other] = await submitKnown(db(), tasks);
    if (one === undefined || other === undefined) throw new Error('no tasks');
    const { known, read } = await db().transaction(async (tx) => ({
      known: await claimOne(tx, one.taskId, { ...one, workerId }),
      read: await claimOne(tx, other.taskId, { workerId }),
    }));
    expect(known.lapsesAt).toEqual(read.lapsesAt);
    expect(known.waitedMs).toBeCloseTo(read.waitedMs, 2);
    expect((await rowOf(db(), one.taskId))?.lapses_at).toEqual(known.lapsesAt);
  });

  it('R-ST3: one that was claimed and came back is claimed as it is now', async () => {
    const [claim] = await submitKnown(db(), [newTask(rich)], now);
    if (claim === undefined) throw new Error('no task');
    const first = await claimOne(db(), claim.taskId, claim, later(1_000));
    await endAttempts(db(), [backToPending(first, { timeoutSeconds: 99 })], later(2_000));
    expect(await wakeDue(db(), 10, later(3_000))).toHaveLength(1);
    const again = { ...claim, lease: newLease() };
    const second = await claimOne(db(), claim.taskId, again, later(4_000));
    expect(second.lease).not.toBe(first.lease);
    const row = await rowOf(db(), claim.taskId);
    expect(row).toMatchObject({ lease: second.lease, attempt: 2, retry_count: 1 });
    expect(second).toMatchObject({
      attempt: 2,
      retryCount: 1,
      parameters: first.parameters,
      timeoutSeconds: row?.timeout_seconds,
      lapsesAt: row?.lapses_at,
      waitedMs: later(4_000).getTime() - (row?.eligible_at as Date).getTime(),
      inLineMs: 1_000,
    });
  });

  it('R-ST1: one whose priority was changed is claimed with the priority it has now', async () => {
    const [claim, untouched] = await submitKnown(db(), newTasks(2, { priority: 'low' }), now);
    if (claim === undefined || untouched === undefined) throw new Error('no tasks');
    await changeTask(db(), claim.taskId, { priority: 'high' }, later(1));
    expect(await wakeDue(db(), 10, later(2))).toHaveLength(1);
    const rows = await claimAll(db(), [claim, untouched], later(10));
    expect(rowsById(rows, [claim, untouched])).toMatchObject([
      { priority: 'high', attempt: 1, waitedMs: 10, parameters: { n: 1 } },
      { priority: 'low', attempt: 1, waitedMs: 10, parameters: { n: 1 } },
    ]);
    expect(await rowOf(db(), claim.taskId)).toMatchObject({ priority: 0, status: 'executing' });
  });

  it('R-ST1: one that was put off is not claimed, and later with the age it has then', async () => {
    const [claim] = await submitKnown(db(), [newTask()], now);
    if (claim === undefined) throw new Error('no task');
    await changeTask(db(), claim.taskId, { runAt: later(5_000) }, later(1));
    expect(await claimAll(db(), [claim], later(2))).toEqual([]);
    await wakeDue(db(), 10, later(6_000));
    expect(await claimAll(db(), [claim], later(7_000))).toMatchObject([{ waitedMs: 2_000 }]);
  });

  it('R-ST1: known and unknown ones go together, each with its own', async () => {
    const tasks = Array.from({ length: 40 }, (_, n) =>
      newTask({ parametersJson: `{"n":${n}}`, costJson: `{"tokens":${n}}`, trace: `t${n}` }),
    );
    const claims = await submitKnown(db(), tasks, now);
    const mixed = claims.map((claim, n) => ({
      ...claim,
      known: [claim.known, null, undefined][n % 3],
    }));
    const rows = await claimAll(db(), mixed as Claim[], later(5));
    expect(rows.map(({ taskId }) => taskId)).toEqual(idsOf(claims));
    expect(rows).toMatchObject(
      claims.map(({ workerId }, n) => ({
        workerId,
        parameters: { n },
        cost: { tokens: n },
        trace: `t${n}`,
        waitedMs: 5,
      })),
    );
  });

  it('R-ST1: the same task twice in one batch is given once, whoever knows it', async () => {
    const [known] = await submitKnown(db(), [newTask()]);
    if (known === undefined) throw new Error('no task');
    const again = { ...known, workerId: newWorkerId(), lease: newLease() };
    const rows = await claimAll(db(), [known, again]);
    expect(rows).toHaveLength(1);
    expect(await rowOf(db(), known.taskId)).toMatchObject({
      lease: rows[0]?.lease,
      worker_id: rows[0]?.workerId,
      attempt: 1,
    });
  });

  it.each(['first', 'last'] as const)(
    'R-ST1: of the same task twice, known only the %s time, one is given, with its parameters',
    async (which) => {
      const [known] = await submitKnown(db(), [newTask({ parametersJson: '{"prompt":"hi"}' })]);
      if (known === undefined) throw new Error('no task');
      const unknown = claimOf(known.taskId);
      const claims = which === 'first' ? [known, unknown] : [unknown, known];
      expect(await claimAll(db(), claims)).toMatchObject([{ parameters: { prompt: 'hi' } }]);
    },
  );

  it('R-ST1: refuses all that are not queued', async () => {
    const tasks = newTasks(3);
    const claims = await submitKnown(db(), tasks);
    const before = await claimAll(db(), claims);
    expect(before).toHaveLength(3);
    expect(await claimAll(db(), claims)).toEqual([]);
    const rows = await Promise.all(tasks.map(({ taskId }) => rowOf(db(), taskId)));
    expect(rows.map((row) => row?.lease)).toEqual(before.map(({ lease }) => lease));
  });

  it('R-ST1: one that is refused costs none of its siblings', async () => {
    const claims = await submitKnown(db(), newTasks(9), now);
    const [gone, changed] = [claims[2], claims[5]];
    if (gone === undefined || changed === undefined) throw new Error('no tasks');
    const missing = { ...gone, taskId: newTaskId() };
    await claimOne(db(), gone.taskId);
    await changeTask(db(), changed.taskId, { priority: 'high' }, later(1));
    const wanted = [missing, ...claims];
    const rows = await claimAll(db(), wanted, later(10));
    const left = idsOf(claims).filter((id) => id !== gone.taskId && id !== changed.taskId);
    expect(rows.map(({ taskId }) => taskId)).toEqual(left);
    for (const { taskId, lease, workerId } of rows) {
      expect(await rowOf(db(), taskId)).toMatchObject({ lease, worker_id: workerId, attempt: 1 });
    }
    expect(await rowOf(db(), changed.taskId)).toMatchObject({ status: 'pending', attempt: 0 });
  });

  it('R-CH4: claims of another generation are refused, and change nothing', async () => {
    const claims = await submitKnown(db(), newTasks(3));
    expect(await beginGeneration(db())).toBe(1);
    expect(await claimAll(db(), claims, null, 0)).toEqual([]);
    for (const { taskId } of claims) {
      const row = await rowOf(db(), taskId);
      expect(row).toMatchObject({ status: 'queued', attempt: 0, lease: null });
    }
    expect(await claimAll(db(), claims, null, 1)).toHaveLength(3);
  });

  it('R-ST1: a worker that prefetches what is known has as long to start as it is told', async () => {
    const claims = await submitKnown(db(), newTasks(2, rich), now);
    const rows = await claimAll(
      db(),
      claims.map((claim, n) => ({ ...claim, start: n === 1 })),
      later(7),
    );
    const { parameters } = await claimedUnknown(rich);
    const assigned = { parameters, attempt: 1, lapsesAt: later(30_007), waitedMs: 7 };
    expect(rowsById(rows, claims)).toMatchObject([
      assigned,
      { ...assigned, lapsesAt: later(61_007) },
    ]);
    const [one, other] = await Promise.all(claims.map(({ taskId }) => rowOf(db(), taskId)));
    expect(one).toMatchObject({ status: 'assigned', started_at: null, lapses_at: later(30_007) });
    expect(other).toMatchObject({ status: 'executing', started_at: later(7) });
  });

  it('R-ST3: every claim of a batch has a lease of its own, the one in its row', async () => {
    const claims = await submitKnown(db(), newTasks(200));
    const rows = await claimAll(db(), claims);
    expect(new Set(rows.map(({ lease }) => lease)).size).toBe(200);
    const held = await db().query<{ id: TaskId; lease: string }>(
      'select id, lease from sluice.tasks',
    );
    const leaseOf = new Map(held.map(({ id, lease }) => [id, lease]));
    expect(rows.map(({ taskId }) => leaseOf.get(taskId))).toEqual(rows.map(({ lease }) => lease));
  });

  async function claimedUnknown(changes: Partial<NewTask>): Promise<ClaimedRow> {
    const [claim] = await submitKnown(db(), [newTask(changes)], now);
    if (claim === undefined) throw new Error('no task');
    return claimOne(db(), claim.taskId, {}, now);
  }
});

describeOnPostgres('claimTasks of what is known', (postgres) => {
  it('R-CH9: a locked row is skipped, and delays and costs nobody else', async () => {
    const { db } = postgres();
    const claims = await submitKnown(db, newTasks(3));
    const [locked, ...free] = claims;
    if (locked === undefined) throw new Error('no tasks');
    await db.transaction(async (tx) => {
      await tx.query('select from sluice.tasks where id = $1 for update', [locked.taskId]);
      expect(await claimAll(db, [locked])).toEqual([]);
      const rows = await claimAll(db, claims);
      expect(rows.map(({ taskId }) => taskId)).toEqual(idsOf(free));
    });
    expect(await rowOf(db, locked.taskId)).toMatchObject({ status: 'queued', attempt: 0 });
    expect(await claimAll(db, claims)).toMatchObject([{ taskId: locked.taskId, attempt: 1 }]);
  });

  it('R-ST1: two servers that claim the same at once, known to one, get each task once', async () => {
    const [one, other] = [postgres().db, await postgres().open()];
    const claims = await submitKnown(one, newTasks(1_000));
    const unknown = claims.map(({ taskId }) => claimOf(taskId)).toReversed();
    const given: ClaimedRow[] = [];
    const claimInTurns = async (db: Queryable, order: readonly Claim[]) => {
      for (let at = 0; at < order.length; at += 50) {
        given.push(...(await claimAll(db, order.slice(at, at + 50))));
      }
    };
    await Promise.all([claimInTurns(one, claims), claimInTurns(other, unknown)]);
    const ids = new Set(given.map(({ taskId }) => taskId));
    expect(given).toHaveLength(ids.size);
    // What both wanted in the same moment, each may have been refused while the other looked.
    const rest = await claimAll(
      one,
      claims.filter(({ taskId }) => !ids.has(taskId)),
    );
    expect(given.length + rest.length).toBe(claims.length);
    const rows = await one.query<{ id: TaskId; lease: string; attempt: number }>(
      'select id, lease, attempt from sluice.tasks',
    );
    const leaseOf = new Map([...given, ...rest].map(({ taskId, lease }) => [taskId, lease]));
    for (const { id, lease, attempt } of rows) {
      expect({ lease, attempt }).toEqual({ lease: leaseOf.get(id), attempt: 1 });
    }
  });

  it('R-ST1: what was claimed before a generation begins is told, also when the rest can not be asked for', async () => {
    const { db } = postgres();
    const claims = await submitKnown(db, newTasks(2));
    const [good, gone] = claims;
    if (good === undefined || gone === undefined) throw new Error('no tasks');
    await claimOne(db, gone.taskId);
    const mayEnd = new Gate();
    let beginning: Promise<unknown> = Promise.resolve();
    // A generation that begins after the first statement of the claim, and takes its time.
    const interrupted: Queryable = {
      run: (script) => db.run(script),
      query: async <Answer>(text: string, parameters?: readonly unknown[]) => {
        const rows = await db.query<Answer>(text, parameters);
        const begun = new Gate();
        beginning = db.transaction(async (tx) => {
          await beginGeneration(tx);
          begun.open();
          await mayEnd.passed;
        });
        await begun.passed;
        interrupted.query = (again, values) => db.query(again, values);
        return rows;
      },
    };
    const [claimed] = await Promise.allSettled([claimAll(interrupted, claims)]);
    mayEnd.open();
    await beginning;
    const row = await rowOf(db, good.taskId);
    const told = claimed.status === 'fulfilled' ? claimed.value : [];
    expect(row?.lease ?? null).toBe(told[0]?.lease ?? null);
  });
});

function claimAll(
  db: Queryable,
  claims: readonly Claim[],
  at: Instant = null,
  generation = 0,
): Promise<ClaimedRow[]> {
  return claimTasks(db, claims, generation, 30_000, at);
}

function idsOf(claims: readonly Claim[]): TaskId[] {
  return claims.map(({ taskId }) => taskId);
}

function rowsById(
  rows: readonly ClaimedRow[],
  claims: readonly Claim[],
): (ClaimedRow | undefined)[] {
  const rowOfTask = new Map(rows.map((row) => [row.taskId, row]));
  return claims.map(({ taskId }) => rowOfTask.get(taskId));
}

/** What two equal tasks need not share. */
function withoutNames(row: Row | undefined): Row {
  const { id, seq, lease, ...rest } = row ?? {};
  expect([id, seq, lease]).not.toContain(undefined);
  return rest;
}
