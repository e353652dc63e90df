import { randomUUID } from 'node:crypto';

import { expect, it } from 'vitest';

import {
  backToPending,
  claimOf,
  claimOne,
  completionOf,
  historyOf,
  knownAttempt,
  knownCompletionOf,
  newTasks,
  newWorkerId,
  rowOf,
  runOne,
  type Row,
} from '../../test/store/lifecycle.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import { allQueues } from '../domain/admission.js';
import type { Lease } from '../domain/ids.js';
import { readStandings, reconcileAdmission, setCeiling } from './admission.js';
import { cancelTasks } from './cancel-tasks.js';
import { claimTasks, type ClaimedRow } from './claim-tasks.js';
import type { Database, Instant } from './database.js';
import { endAttempts } from './end-attempts.js';
import { wakeDue } from './feed-line.js';
import { completeTasks } from './finish-tasks.js';
import type { NewTask } from './new-task.js';
import { recordProgress, startTasks } from './start-tasks.js';
import { submitTasks } from './submit-tasks.js';

const now = new Date();
const later = (ms: number): Date => new Date(now.getTime() + ms);

const rich: Partial<NewTask> = {
  queue: 'gpt',
  taskType: 'chat/v1',
  capabilities: ['a,b', 'gpu'],
  priority: 'high',
  costJson: '{"tokens":5}',
  tags: ['x'],
  userId: 'user',
  trace: 'trace',
};

describeOnEveryDatabase('completeTasks of what is known', (db) => {
  it.each([
    ['with everything', rich],
    ['with nothing but what it must have', {}],
  ])('R-ST3: answers and keeps what it does of what is not, of a task %s', async (_, changes) => {
    const workerId = newWorkerId();
    const [one, other] = [
      await runOne(db(), changes, { workerId }, now),
      await runOne(db(), changes, { workerId }, now),
    ];
    const result = {
      resultJson: '{"text":"\\u0000 and \\ud800"}',
      usageJson: '{"tokens":4}',
      executionSeconds: 1.5,
    };
    const known = knownAttempt(one, changes.capabilities);
    const [answer] = await completeTasks(
      db(),
      [completionOf(one, { ...result, known })],
      later(2_500),
    );
    const [read] = await completeTasks(db(), [completionOf(other, result)], later(2_500));
    expect(answer).toEqual({ ...read, taskId: one.taskId, lease: one.lease });
    expect(answer).toMatchObject({ runMs: 2_500, from: 'executing', workerId, released: false });

    expect(await rowOf(db(), one.taskId)).toBeUndefined();
    const kept = await historyOf(db(), one.taskId);
    expect(withoutNames(kept)).toEqual(withoutNames(await historyOf(db(), other.taskId)));
    expect(kept).toMatchObject({
      id: one.taskId,
      lease: one.lease,
      status: 'completed',
      started_at: now,
      ended_at: later(2_500),
      result: { text: '\u0000 and \ud800' },
    });
  });

  it('R-ST3: by the clock of the database, it ran as long as its history says', async () => {
    const held = await runOne(db());
    const [done] = await completeTasks(db(), [knownCompletionOf(held)], null);
    const [row] = await db().query<{ ms: number }>(
      `select date_part('epoch', ended_at - started_at) * 1000 as ms from sluice.task_history`,
    );
    const early = (done?.runMs ?? NaN) - (row?.ms ?? NaN);
    // An instant that came to this process lost its microseconds.
    expect(Math.abs(early)).toBeLessThan(1.01);
  });

  it('R-ST3: a second attempt is told with its own number, worker and start', async () => {
    const first = await runOne(db(), {}, {}, now);
    await endAttempts(db(), [backToPending(first)], later(10));
    await wakeDue(db(), 10, later(20));
    const second = await claimOne(db(), first.taskId, {}, later(1_000));
    const stale = knownCompletionOf(first);
    const answers = await completeTasks(db(), [stale, knownCompletionOf(second)], later(1_300));
    expect(answers).toMatchObject([
      { lease: second.lease, workerId: second.workerId, attempt: 2, runMs: 300 },
    ]);
    expect(await historyOf(db(), first.taskId)).toMatchObject({ attempt: 2, lease: second.lease });
  });

  it('R-ST3: a stale lease among good ones changes nothing, and costs none of them', async () => {
    const held = await runMany(5);
    const [first, stolen, unknown] = held as [ClaimedRow, ClaimedRow, ClaimedRow];
    const completions = held.map((row) => knownCompletionOf(row));
    completions[1] = knownCompletionOf(stolen, { lease: first.lease });
    completions[2] = knownCompletionOf(unknown, { lease: randomUUID() as Lease });
    const answers = await completeTasks(db(), completions, later(5));
    const good = held.filter((row) => row !== stolen && row !== unknown);
    expect(answers.map(nameOf)).toEqual(good.map(nameOf));
    for (const { taskId, lease } of [stolen, unknown]) {
      expect(await rowOf(db(), taskId)).toMatchObject({ status: 'executing', lease });
    }
    expect(await countHistory(db())).toBe(3);
  });

  it('R-ST3: when all leases are stale nothing ends, and nothing is counted', async () => {
    const held = await runMany(3);
    const completions = held.map((row) => knownCompletionOf(row, { lease: randomUUID() as Lease }));
    expect(await completeTasks(db(), completions, null)).toEqual([]);
    expect(await countHistory(db())).toBe(0);
    expect(await activeIn(db())).toBe(3);
    expect(await completeTasks(db(), [], null)).toEqual([]);
  });

  it('R-RE8: of the same report twice, together or one after the other, one counts', async () => {
    const [one, other] = await runMany(2);
    if (one === undefined || other === undefined) throw new Error('nothing runs');
    const completion = knownCompletionOf(one, { resultJson: '{"n":1}' });
    const together = [completion, knownCompletionOf(other), completion];
    const answers = await completeTasks(db(), together, null);
    expect(answers.map(nameOf)).toEqual([nameOf(one), nameOf(other)]);
    expect(await completeTasks(db(), [completion], null)).toEqual([]);
    expect(await completeTasks(db(), together, null)).toEqual([]);
    expect(await countHistory(db())).toBe(2);
    expect(await activeIn(db())).toBe(0);
  });

  it('R-RE8: of the same report, known once and once not, one counts', async () => {
    const held = await runOne(db());
    const answers = await completeTasks(db(), [knownCompletionOf(held), completionOf(held)], null);
    expect(answers).toHaveLength(1);
    expect(await completeTasks(db(), [knownCompletionOf(held)], null)).toEqual([]);
    expect(await countHistory(db())).toBe(1);
    expect(await activeIn(db())).toBe(0);
  });

  it('R-ST3: one that was cancelled stays cancelled, and its siblings end', async () => {
    const held = await runMany(3);
    const cancelled = held[1];
    if (cancelled === undefined) throw new Error('nothing runs');
    await cancelTasks(db(), [cancelled.taskId], later(1));
    const answers = await completeTasks(
      db(),
      held.map((row) => knownCompletionOf(row, { resultJson: '1' })),
      later(2),
    );
    expect(answers.map(nameOf)).toEqual(held.filter((row) => row !== cancelled).map(nameOf));
    expect(await historyOf(db(), cancelled.taskId)).toMatchObject({
      status: 'cancelled',
      ended_at: later(1),
      result: null,
    });
    expect(await activeIn(db())).toBe(0);
  });

  it('R-ST3: one that lapsed goes on as what it became, and its siblings end', async () => {
    const held = await runMany(3);
    const [lapsed, other] = held;
    if (lapsed === undefined || other === undefined) throw new Error('nothing runs');
    const ends = [lapsed, other].map((row) => ({
      ...backToPending(row),
      outcome: 'lapsed' as const,
    }));
    await endAttempts(db(), ends, later(10));
    await wakeDue(db(), 10, later(20));
    const again = await claimOne(db(), other.taskId, {}, later(30));
    const answers = await completeTasks(
      db(),
      held.map((row) => knownCompletionOf(row)),
      later(40),
    );
    expect(answers.map(nameOf)).toEqual(held.slice(2).map(nameOf));
    expect(await rowOf(db(), lapsed.taskId)).toMatchObject({ status: 'queued', retry_count: 1 });
    expect(await rowOf(db(), other.taskId)).toMatchObject({
      status: 'executing',
      lease: again.lease,
      attempt: 2,
    });
    expect(await activeIn(db())).toBe(2);
  });

  it('R-ST3: known and unknown ones go together, members of a workflow too', async () => {
    const held = await runMany(6, {}, now);
    const assigned = await runOne(db(), {}, { start: false }, now);
    const [head] = await submitTasks(db(), newTasks(2, { workflowId: 'w' }), now);
    await wakeDue(db(), 10, now);
    if (head === undefined) throw new Error('nothing was answered');
    const member = await claimOne(db(), head.taskId, {}, now);
    const completions = [
      ...held.map((row, n) => (n % 2 === 0 ? knownCompletionOf(row) : completionOf(row))),
      completionOf(assigned),
      completionOf(member),
    ];
    const answers = await completeTasks(db(), completions, later(50));
    const plain = { from: 'executing', workflowId: null, runMs: 50, released: false };
    const expected = [...held, assigned, member].map((row) => ({ ...plain, ...nameOf(row) }));
    expect(answers).toMatchObject(
      expected.map((row) => {
        if (row.taskId === assigned.taskId) return { ...row, from: 'assigned' };
        return row.taskId === member.taskId ? { ...row, workflowId: 'w', released: true } : row;
      }),
    );
    expect(await countHistory(db())).toBe(8);
    expect(await activeIn(db())).toBe(1);
    expect(await reconcileAdmission(db())).toEqual([]);
  });

  it('R-ST3: a start that is said again and progress leave what is known right', async () => {
    const held = await runOne(db(), {}, {}, now);
    await startTasks(db(), [held], later(100));
    await recordProgress(db(), [{ ...held, percent: 50, message: 'half' }]);
    const answers = await completeTasks(db(), [knownCompletionOf(held)], later(250));
    expect(answers).toMatchObject([{ runMs: 250, attempt: 1 }]);
    const kept = await historyOf(db(), held.taskId);
    expect(kept).toMatchObject({ started_at: now, progress_percent: 50 });
  });

  it('R-AD1: each leaves its place once, in all queues and in its own', async () => {
    await setCeiling(db(), 'a', 100);
    const held = [...(await runMany(4, { queue: 'a' })), ...(await runMany(3, { queue: 'b' }))];
    const standing = () => Promise.all([activeIn(db()), activeIn(db(), 'a')]);
    expect(await standing()).toEqual([7, 4]);

    const completions = held.map((row) => knownCompletionOf(row));
    const stale = knownCompletionOf(held[0] ?? missing(), { lease: randomUUID() as Lease });
    await completeTasks(db(), [stale, ...completions.slice(1, 3)], null);
    expect(await standing()).toEqual([5, 2]);
    await completeTasks(db(), completions, null);
    expect(await standing()).toEqual([0, 0]);
    await completeTasks(db(), completions, null);
    expect(await standing()).toEqual([0, 0]);
    expect(await reconcileAdmission(db())).toEqual([]);
  });

  function runMany(
    count: number,
    changes: Partial<NewTask> = {},
    at: Instant = null,
  ): Promise<ClaimedRow[]> {
    return runAll(db(), newTasks(count, changes), at);
  }
});

describeOnPostgres('completeTasks of what is known', (postgres) => {
  it('R-RE8: two servers that report the same at once, known to one, complete each once', async () => {
    const [one, other] = [await postgres().openPatient(), await postgres().openPatient()];
    const held = await runAll(postgres().db, newTasks(500), null);
    const answers = await Promise.all([
      completeTasks(
        one,
        held.map((row) => knownCompletionOf(row)),
        null,
      ),
      completeTasks(
        other,
        held.map((row) => completionOf(row)),
        null,
      ),
    ]);
    const leases = answers.flat().map(({ lease }) => lease);
    expect(leases.toSorted()).toEqual(held.map(({ lease }) => lease).toSorted());
    expect(await countHistory(postgres().db)).toBe(500);
    expect(await activeIn(postgres().db)).toBe(0);
  });

  it('R-WO9: a result that meets a progress report of its task is not taken for stale', async () => {
    const db = await postgres().openPatient(10);
    for (let round = 0; round < 10; round += 1) {
      const held = await runAll(db, newTasks(50), null);
      const [finished] = await Promise.all([
        completeTasks(
          db,
          held.map((row) => knownCompletionOf(row)),
          null,
        ),
        ...held.map((row) => recordProgress(db, [{ ...row, percent: 50, message: null }])),
      ]);
      expect(finished.map(({ taskId }) => taskId).toSorted()).toEqual(
        held.map(({ taskId }) => taskId).toSorted(),
      );
    }
    expect(await activeIn(db)).toBe(0);
    expect(await reconcileAdmission(db)).toEqual([]);
  });
});

async function runAll(db: Database, tasks: readonly NewTask[], at: Instant): Promise<ClaimedRow[]> {
  await submitTasks(db, tasks, at);
  const claims = tasks.map(({ taskId }) => claimOf(taskId));
  const held = await claimTasks(db, claims, 0, 30_000, at);
  expect(held).toHaveLength(tasks.length);
  return held;
}

async function activeIn(db: Database, scope = allQueues): Promise<number | undefined> {
  return (await readStandings(db, [scope], null)).get(scope)?.active;
}

async function countHistory(db: Database): Promise<number> {
  return (await db.query('select from sluice.task_history')).length;
}

function nameOf({ taskId, lease, workerId }: Pick<ClaimedRow, 'taskId' | 'lease' | 'workerId'>) {
  return { taskId, lease, workerId };
}

/** What two equal tasks need not share. */
function withoutNames(row: Row | undefined): Row {
  const { id, seq, lease, ...rest } = row ?? {};
  expect([id, seq, lease]).not.toContain(undefined);
  return rest;
}

function missing(): never {
  throw new Error('nothing runs');
}
