import { expect, it } from 'vitest';

import { newKey, newTask, newTasks, rowOf, type Row } from '../../test/store/lifecycle.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import { allQueues } from '../domain/admission.js';
import type { TaskId } from '../domain/ids.js';
import { isOverfull, readStandings, setCeiling, type Needed } from './admission.js';
import type { Database, Instant, Queryable } from './database.js';
import { insertDueTasks, isDueAtOnce } from './insert-due-tasks.js';
import { insertTasks } from './insert-tasks.js';
import type { Created, NewTask } from './new-task.js';
import { submitTasks } from './submit-tasks.js';

const now = new Date();

const rich: Partial<NewTask> = {
  queue: 'gpt',
  taskType: 'chat/v1',
  capabilities: ['a,b', 'c"d', 'e\\f'],
  priority: 'low',
  parametersJson: '{"b":1,"a":"\\u0000","n":12345678901234567890}',
  timeoutSeconds: 42,
  maxRetries: 7,
  costJson: '{"tokens":1200}',
  userId: 'user',
  tags: ['x', 'y z'],
  trace: 'trace',
};

describeOnEveryDatabase('insertDueTasks', (db) => {
  it('R-CH8: keeps everything that was submitted, in line at one instant', async () => {
    const tasks = [newTask(), newTask(rich), newTask()];
    const [plain, full] = tasks as [NewTask, NewTask];
    const created = await insertDue(db(), tasks, now);
    expect(created.get(full.taskId)).toEqual({
      kind: 'created',
      taskId: full.taskId,
      status: 'queued',
      waitsFor: null,
      seq: (await rowOf(db(), full.taskId))?.seq,
      createdAt: now,
      eligibleAtMs: now.getTime(),
      isClaimed: false,
    });
    const inLine = {
      status: 'queued',
      waits_for: null,
      created_at: now,
      eligible_at: now,
      queued_at: now,
      run_at: null,
      expires_at: null,
      attempt: 0,
      retry_count: 0,
    };
    expect(await rowOf(db(), full.taskId)).toMatchObject({
      ...inLine,
      queue: 'gpt',
      task_type: 'chat/v1',
      capabilities: ['a,b', 'c"d', 'e\\f'],
      priority: 2,
      timeout_seconds: 42,
      max_retries: 7,
      cost: { tokens: 1200 },
      user_id: 'user',
      tags: ['x', 'y z'],
      trace_id: 'trace',
    });
    expect(await rowOf(db(), plain.taskId)).toMatchObject({
      ...inLine,
      capabilities: [],
      cost: null,
      user_id: null,
      tags: [],
      trace_id: null,
    });
    expect(await parametersOf(full.taskId)).toBe(full.parametersJson);
    expect(await parametersOf(plain.taskId)).toBe(plain.parametersJson);
  });

  it.each([
    ['with everything', rich],
    ['with nothing but what it must have', {}],
  ])('R-ST1: writes and answers what the general statement does, of a task %s', async (_, its) => {
    const [due, other] = newTasks(2, its) as [NewTask, NewTask];
    const delayed = newTask({ delaySeconds: 60 });
    expect([due, other, delayed].map(isDueAtOnce)).toEqual([true, true, false]);
    const quick = (await insertTasks(db(), [due], [], quietly, now)).get(due.taskId);
    const general = await insertTasks(db(), [delayed, other], [], quietly, now);
    const slow = general.get(other.taskId);
    expect(slow).toEqual({ ...quick, taskId: other.taskId, seq: slow?.seq });
    expect(withoutNames(await rowOf(db(), due.taskId))).toEqual(
      withoutNames(await rowOf(db(), other.taskId)),
    );
    expect(await parametersOf(due.taskId)).toBe(await parametersOf(other.taskId));
  });

  it('R-CH8: by the clock of the database, it is in line when it was made', async () => {
    const tasks = newTasks(3);
    const created = await insertDue(db(), tasks, null);
    const rows = await db().query<{ one: boolean; ms: number }>(
      `select created_at = eligible_at and created_at = queued_at as one,
         date_part('epoch', eligible_at) * 1000 as ms
       from sluice.tasks order by seq`,
    );
    expect(rows).toEqual(
      tasks.map(({ taskId }) => ({ one: true, ms: created.get(taskId)?.eligibleAtMs })),
    );
  });

  it.each([
    { isOffered: false },
    { runAt: now },
    { delaySeconds: 0 },
    { dispatchDeadlineSeconds: 60 },
    { workflowId: 'w' },
    { idempotency: newKey('k') },
  ])('R-CH8: is not for a task with %o', (changes) => {
    expect(isDueAtOnce(newTask(changes))).toBe(false);
    expect(isDueAtOnce(newTask())).toBe(true);
  });

  it.each([1, 2, 500])('R-CH1: tells of %i the numbers that their rows have', async (count) => {
    const tasks = newTasks(count).toReversed();
    expect(await toldOf(db(), tasks)).toEqual(await keptOf(db(), tasks));
    expect((await inOrder(db())).map(({ id }) => id)).toEqual(tasks.map(({ taskId }) => taskId));
  });

  it.each([
    ['after the first', 'new.seq = first'],
    ['before the last', 'new.seq = first + 8'],
    ['between all of them', 'true'],
    ['here and there', 'new.seq % 3 = 0'],
  ])('R-CH1: numbers that others took %s are nobody’s', async (_, condition) => {
    const tasks = newTasks(10);
    await rolledBack(db(), async (tx) => {
      await tx.run(takingNumbers(condition));
      const told = await toldOf(tx, tasks);
      expect(told).toEqual(await keptOf(tx, tasks));
      const seqs = told.map((seq) => seq ?? NaN);
      expect((seqs.at(-1) ?? NaN) - (seqs[0] ?? NaN)).toBeGreaterThan(9);
    });
  });

  it('R-AD1: a ceiling refuses a batch as a whole, by a look or by the count', async () => {
    await insertDue(db(), newTasks(3), null, [{ ...anyNumber, mostBefore: 0 }]);
    expect(await activeIn(db())).toBe(3);
    const full = [{ ...anyNumber, mostBefore: 2 }];
    const looked = await insertTasks(db(), newTasks(4), full, { counts: true, looks: true }, null);
    expect(looked).toEqual(new Map());
    const counted = await insertDue(db(), newTasks(4), null, full).catch((error: unknown) => error);
    expect(isOverfull(counted)).toBe(true);
    expect(await inOrder(db())).toHaveLength(3);
    expect(await db().query('select from sluice.task_inputs')).toHaveLength(3);
    expect(await activeIn(db())).toBe(3);

    const room = [{ ...anyNumber, mostBefore: 3 }];
    const let4 = await insertTasks(db(), newTasks(4), room, { counts: true, looks: true }, null);
    expect(let4.size).toBe(4);
    expect(await activeIn(db())).toBe(7);
  });

  it('R-AD1: the ceiling of one queue refuses the whole batch; nothing of it is left', async () => {
    await setCeiling(db(), 'a', 5);
    const batch = [...newTasks(6, { queue: 'a' }), ...newTasks(2, { queue: 'b' })];
    const needs: Needed[] = [
      anyNumber,
      { scope: 'a', mostBefore: -1, maxActive: 5 },
      { ...anyNumber, scope: 'b' },
    ];
    const refused = await insertDue(db(), batch, null, needs).catch((error: unknown) => error);
    expect(isOverfull(refused)).toBe(true);
    expect(await inOrder(db())).toEqual([]);
    expect([await activeIn(db()), await activeIn(db(), 'a')]).toEqual([0, 0]);

    // Asked through the front door, those for whom there is room come in, with their numbers.
    const answers = await submitTasks(db(), batch, null);
    const kinds = answers.map(({ kind }) => kind);
    const created = [...Array.from({ length: 5 }, () => 'created'), 'refused'];
    expect(kinds).toEqual([...created, 'created', 'created']);
    const seqs = answers.flatMap((answer) => (answer.kind === 'created' ? [answer.seq] : []));
    expect(seqs).toEqual((await inOrder(db())).map(({ seq }) => seq));
    expect([await activeIn(db()), await activeIn(db(), 'a')]).toEqual([7, 5]);
  });

  it('R-AD1: what it does not count is left to be counted', async () => {
    const created = await insertTasks(db(), newTasks(2), [anyNumber], quietly, null);
    expect([created.size, await activeIn(db())]).toEqual([2, 0]);
  });

  it('R-ST1: a batch that holds a bad row inserts nothing', async () => {
    const tasks = [newTask(), newTask({ parametersJson: 'not json' }), newTask()];
    await expect(insertDue(db(), tasks, null)).rejects.toThrow('json');
    expect(await inOrder(db())).toEqual([]);
    expect(await db().query('select from sluice.task_inputs')).toEqual([]);
    expect(await activeIn(db())).toBe(0);
  });

  async function parametersOf(taskId: TaskId): Promise<string | undefined> {
    const [inputs] = await db().query<{ text: string }>(
      'select parameters::text as text from sluice.task_inputs where task_id = $1',
      [taskId],
    );
    return inputs?.text;
  }
});

describeOnPostgres('insertDueTasks', (postgres) => {
  it('R-CH1: numbers are those of the rows, also while two servers insert at once', async () => {
    const servers = [await postgres().openPatient(), await postgres().openPatient()];
    const told = new Map<TaskId, number>();
    const sizes = [1, 300, 2, 150, 40];
    await Promise.all(
      servers.flatMap((db) =>
        [0, 1].map(async (offset) => {
          for (let round = 0; round < 15; round += 1) {
            const tasks = newTasks(sizes[(round + offset) % sizes.length] ?? 1);
            const created = await insertTasks(db, tasks, [], quietly, null);
            for (const { taskId, seq } of created.values()) told.set(taskId, seq);
          }
        }),
      ),
    );
    const rows = await inOrder(postgres().db);
    expect(new Map(rows.map(({ id, seq }) => [id, seq]))).toEqual(told);
    expect(new Set(told.values()).size).toBe(told.size);
  });

  it('R-CH1: also of batches of both kinds, that are counted', async () => {
    const servers = [await postgres().openPatient(), await postgres().openPatient()];
    const told = new Map<TaskId, number>();
    await Promise.all(
      servers.map(async (db, n) => {
        for (let round = 0; round < 20; round += 1) {
          const tasks = newTasks(60, n === 0 ? {} : { delaySeconds: round % 2 });
          for (const answer of await submitTasks(db, tasks, null)) {
            if (answer.kind === 'created') told.set(answer.taskId, answer.seq);
          }
        }
      }),
    );
    const rows = await inOrder(postgres().db);
    expect(rows).toHaveLength(2_400);
    expect(new Map(rows.map(({ id, seq }) => [id, seq]))).toEqual(told);
    expect(await activeIn(postgres().db)).toBe(2_400);
  });
});

const anyNumber: Needed = { scope: allQueues, mostBefore: null, maxActive: null };
const quietly = { counts: false, looks: false };

function insertDue(
  db: Pick<Queryable, 'query'>,
  tasks: readonly NewTask[],
  at: Instant,
  needs: readonly Needed[] = [anyNumber],
): Promise<Map<TaskId, Created>> {
  return insertDueTasks(db, tasks, needs, { counts: true, looks: false }, at);
}

async function toldOf(db: Queryable, tasks: readonly NewTask[]): Promise<(number | undefined)[]> {
  const created = await insertDueTasks(db, tasks, [], quietly, null);
  return tasks.map(({ taskId }) => created.get(taskId)?.seq);
}

async function keptOf(db: Queryable, tasks: readonly NewTask[]): Promise<(number | undefined)[]> {
  const seqOf = new Map((await inOrder(db)).map(({ id, seq }) => [id, seq]));
  return tasks.map(({ taskId }) => seqOf.get(taskId));
}

function inOrder(db: Queryable): Promise<{ readonly id: TaskId; readonly seq: number }[]> {
  return db.query('select id, seq from sluice.tasks order by seq');
}

async function activeIn(db: Database, scope = allQueues): Promise<number | undefined> {
  return (await readStandings(db, [scope], null)).get(scope)?.active;
}

/** Takes the next number away after a row, as somebody else would who inserts meanwhile. */
function takingNumbers(condition: string): string {
  return `
    create function pg_temp.take_number() returns trigger language plpgsql as $$
    declare
      first constant bigint := current_setting('test.first')::bigint;
    begin
      if ${condition} then
        perform nextval('sluice.task_seq');
      end if;
      return new;
    end $$;
    create trigger take_number before insert on sluice.tasks
      for each row execute function pg_temp.take_number();
    select set_config('test.first', (nextval('sluice.task_seq') + 1)::text, true);`;
}

async function rolledBack(db: Database, work: (tx: Queryable) => Promise<void>): Promise<void> {
  const end = new Error('rolled back');
  const ended = db.transaction(async (tx) => {
    await work(tx);
    throw end;
  });
  await expect(ended).rejects.toBe(end);
}

/** What two equal tasks need not share. */
function withoutNames(row: Row | undefined): Row {
  const { id, seq, ...rest } = row ?? {};
  expect([id, seq]).not.toContain(undefined);
  return rest;
}
