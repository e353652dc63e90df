import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';

import {
  claimOf,
  completionOf,
  historyOf,
  newTask,
  newTasks,
  newWorkerId,
  rowOf,
  type Row,
} from '../../test/store/lifecycle.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import { allQueues } from '../domain/admission.js';
import type { Lease, TaskId } from '../domain/ids.js';
import { isOverfull, readStandings, setCeiling, type Needed } from './admission.js';
import { claimTasks } from './claim-tasks.js';
import type { Queryable } from './database.js';
import { completeTasks } from './finish-tasks.js';
import { beginGeneration } from './generation.js';
import { insertDueTasks } from './insert-due-tasks.js';
import { insertTasks } from './insert-tasks.js';
import type { Created, NewClaim, NewTask } from './new-task.js';
import { startTasks } from './start-tasks.js';
import { submitTasks } from './submit-tasks.js';

const now = new Date();
const unstartedMs = 30_000;

const rich: Partial<NewTask> = {
  queue: 'gpt',
  capabilities: ['a,b', 'c"d'],
  priority: 'low',
  parametersJson: '{"n":12345678901234567890}',
  timeoutSeconds: 42,
  maxRetries: 7,
  costJson: '{"tokens":1200}',
  userId: 'user',
  tags: ['x', 'y z'],
  trace: 'trace',
};

describeOnEveryDatabase('insertDueTasks of what is claimed', (db) => {
  it.each([
    ['with everything, started', rich, true],
    ['with nothing but what it must have, started', {}, true],
    ['with everything, assigned', rich, false],
    ['with nothing but what it must have, assigned', {}, false],
  ])('R-ST1: writes what an insert and a claim write, of a task %s', async (_, its, start) => {
    const claim = newClaim({ start });
    const early = newTask({ ...its, claim });
    const { taskId } = newTask();
    const created = (await insert(db(), [early])).get(early.taskId);
    expect(created).toMatchObject({ status: 'queued', isClaimed: true, eligibleAtMs: +now });
    await insert(db(), [newTask({ ...its, taskId })]);
    const claims = [claimOf(taskId, { workerId: claim.workerId, start })];
    const [claimed] = await claimTasks(db(), claims, 0, unstartedMs, now);
    const [one, two] = [await rowOf(db(), early.taskId), await rowOf(db(), taskId)];
    expect(withoutNames(one)).toEqual(withoutNames(two));
    expect([one?.lease, two?.lease]).toEqual([claim.lease, claimed?.lease]);
    expect(one?.status).toBe(start ? 'executing' : 'assigned');
  });

  it('R-ST1: by the clock of the database, it began when it was made', async () => {
    const [started, assigned] = [claimed(), claimed({ start: false })];
    await insertDueTasks(db(), [started, assigned], [anyNumber], counting, null);
    const rows = await db().query(
      `select created_at = eligible_at and created_at = queued_at and created_at = assigned_at
           as is_one, started_at = created_at as is_started,
         date_part('epoch', lapses_at - created_at) as lapses_after
       from sluice.tasks order by seq`,
    );
    expect(rows).toEqual([
      { is_one: true, is_started: true, lapses_after: started.timeoutSeconds },
      { is_one: true, is_started: null, lapses_after: unstartedMs / 1000 },
    ]);
  });

  it('R-CH1: among those that wait, each is what it is, with the number of its row', async () => {
    const tasks = Array.from({ length: 40 }, (_, n) =>
      newTask(n % 3 === 1 ? { claim: newClaim({ start: n % 2 === 0 }) } : {}),
    );
    const created = await insert(db(), tasks);
    const rows = await db().query<Row>('select * from sluice.tasks order by seq');
    expect(rows).toMatchObject(
      tasks.map(({ taskId, claim }) => ({
        id: taskId,
        seq: created.get(taskId)?.seq,
        status: claim === null ? 'queued' : claim.start ? 'executing' : 'assigned',
        lease: claim?.lease ?? null,
        worker_id: claim?.workerId ?? null,
        attempt: claim === null ? 0 : 1,
      })),
    );
    const kept = tasks.map(({ taskId }) => created.get(taskId)?.isClaimed);
    expect(kept).toEqual(tasks.map(({ claim }) => claim !== null));
    const queued = tasks.filter(({ claim }) => claim === null).map(({ taskId }) => taskId);
    const rest = await claimTasks(
      db(),
      queued.map((id) => claimOf(id)),
      0,
      unstartedMs,
      now,
    );
    expect(rest.map(({ taskId }) => taskId).toSorted()).toEqual(queued.toSorted());
  });

  it('R-RE7: of an older generation it waits in line as any other', async () => {
    const plain = newTask(rich);
    await insert(db(), [plain]);
    expect(await beginGeneration(db())).toBe(1);
    const late = newTask({ ...rich, claim: newClaim() });
    const created = await insert(db(), [late]);
    expect(created.get(late.taskId)).toMatchObject({ status: 'queued', isClaimed: false });
    const [one, two] = [await rowOf(db(), late.taskId), await rowOf(db(), plain.taskId)];
    expect(withoutNames(one)).toEqual(withoutNames(two));
    const present = claimed({ generation: 1 });
    expect((await insert(db(), [present])).get(present.taskId)?.isClaimed).toBe(true);
  });

  it('R-AD1: it counts, and where there is no room for all nothing of it is left', async () => {
    await insert(db(), [claimed(), newTask()]);
    expect(await active()).toBe(2);
    const full = [{ ...anyNumber, mostBefore: 1 }];
    const batch = () => [claimed(), newTask()];
    const looked = await insertTasks(db(), batch(), full, { counts: true, looks: true }, now);
    expect(looked).toEqual(new Map());
    const counted = await insertDueTasks(db(), batch(), full, counting, now).catch(
      (error: unknown) => error,
    );
    expect(isOverfull(counted)).toBe(true);
    expect(await db().query('select from sluice.tasks')).toHaveLength(2);
    expect(await active()).toBe(2);
  });

  it('R-AD1: whoever is let in after all is still whose it was', async () => {
    const tasks = [claimed({}, { queue: 'a' }), ...newTasks(2, { queue: 'a' }), claimed()];
    await setCeiling(db(), 'a', 2);
    const answers = await submitTasks(db(), tasks, now);
    const kept = answers.map((one) => (one.kind === 'created' ? one.isClaimed : one.kind));
    expect(kept).toEqual([true, false, 'refused', true]);
  });

  it('R-ST1: beside a bad row nothing of it is written', async () => {
    const tasks = [claimed(), newTask({ parametersJson: 'not json' })];
    await expect(insert(db(), tasks)).rejects.toThrow('json');
    expect(await db().query('select from sluice.tasks')).toEqual([]);
    expect(await active()).toBe(0);
  });

  it('R-ST3: its lease ends it once, and no other does', async () => {
    const claim = newClaim();
    const task = newTask({ claim });
    await insert(db(), [task]);
    const { taskId } = task;
    const end = (lease: Lease) => completeTasks(db(), [completionOf({ taskId, lease })], now);
    expect(await end(randomUUID() as Lease)).toEqual([]);
    expect(await end(claim.lease)).toHaveLength(1);
    expect(await end(claim.lease)).toEqual([]);
    expect(await rowOf(db(), taskId)).toBeUndefined();
    expect(await historyOf(db(), taskId)).toMatchObject({ status: 'completed' });
  });

  it('R-ST3: an assigned one is started by its lease alone, and claimed by nobody', async () => {
    const claim = newClaim({ start: false });
    const { taskId } = await inserted(newTask({ claim }));
    expect(await startTasks(db(), [{ taskId, lease: randomUUID() as Lease }], now)).toEqual([]);
    expect(await claimTasks(db(), [claimOf(taskId)], 0, unstartedMs, now)).toEqual([]);
    expect(await startTasks(db(), [{ taskId, lease: claim.lease }], now)).toHaveLength(1);
  });

  async function inserted(task: NewTask): Promise<NewTask> {
    await insert(db(), [task]);
    return task;
  }

  async function active(): Promise<number | undefined> {
    return (await readStandings(db(), [allQueues], null)).get(allQueues)?.active;
  }
});

describeOnPostgres('insertDueTasks of what is claimed', (postgres) => {
  it('R-RE7: a new generation waits for those under way, and finds them running', async () => {
    const task = claimed();
    const other = await postgres().openPatient();
    const begun = await postgres().db.transaction(async (tx) => {
      await insert(tx, [task]);
      const begins = beginGeneration(other).then((generation) => ({ generation }));
      const soon = new Promise((resolve) => setTimeout(resolve, 200, 'not yet'));
      expect(await Promise.race([begins, soon])).toBe('not yet');
      return { begins };
    });
    expect(await begun.begins).toEqual({ generation: 1 });
    expect(await rowOf(postgres().db, task.taskId)).toMatchObject({ status: 'executing' });
  });
});

const anyNumber: Needed = { scope: allQueues, mostBefore: null, maxActive: null };
const counting = { counts: true, looks: false };

function newClaim(changes: Partial<NewClaim> = {}): NewClaim {
  const lease = randomUUID() as Lease;
  return { workerId: newWorkerId(), lease, start: true, generation: 0, unstartedMs, ...changes };
}

function claimed(claim: Partial<NewClaim> = {}, changes: Partial<NewTask> = {}): NewTask {
  return newTask({ ...changes, claim: newClaim(claim) });
}

function insert(
  db: Pick<Queryable, 'query'>,
  tasks: readonly NewTask[],
): Promise<Map<TaskId, Created>> {
  return insertDueTasks(db, tasks, [anyNumber], counting, now);
}

/** What two equal tasks need not share. */
function withoutNames(row: Row | undefined): Row {
  const { id, seq, lease, ...rest } = row ?? {};
  expect([id, seq, lease]).not.toContain(undefined);
  return rest;
}
