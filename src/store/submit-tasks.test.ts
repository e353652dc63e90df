import { expect, it } from 'vitest';

import {
  claimOne,
  completionOf,
  newKey,
  newTask,
  newTaskId,
  newTasks,
  rowOf,
  runOne,
  submitOne,
} from '../../test/store/lifecycle.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import { completeTasks } from './finish-tasks.js';
import type { NewTask, Submitted } from './new-task.js';
import { submitTasks } from './submit-tasks.js';

const now = new Date();
const later = (ms: number): Date => new Date(now.getTime() + ms);
const day = 24 * 60 * 60 * 1000;

describeOnEveryDatabase('submitTasks', (db) => {
  it('keeps everything that was submitted', async () => {
    const task = newTask({
      queue: 'gpt',
      taskType: 'chat/v1',
      capabilities: ['a,b', 'c"d', 'e\\f'],
      priority: 'low',
      parametersJson: '{"b":1,"a":"\\u0000","n":12345678901234567890}',
      timeoutSeconds: 42,
      maxRetries: 7,
      dispatchDeadlineSeconds: 60,
      haltsWorkflow: false,
      costJson: '{"tokens":1200}',
      userId: 'user',
      tags: ['x', 'y'],
      trace: 'trace',
    });
    const answers = await submitTasks(db(), [task], now);
    expect(answers).toEqual([
      {
        kind: 'created',
        taskId: task.taskId,
        status: 'queued',
        waitsFor: null,
        seq: expect.any(Number) as number,
        createdAt: now,
        eligibleAtMs: now.getTime(),
        isClaimed: false,
      },
    ]);
    expect(await rowOf(db(), task.taskId)).toMatchObject({
      id: task.taskId,
      queue: 'gpt',
      task_type: 'chat/v1',
      capabilities: ['a,b', 'c"d', 'e\\f'],
      priority: 2,
      status: 'queued',
      created_at: now,
      eligible_at: now,
      queued_at: now,
      run_at: null,
      dispatch_deadline_seconds: 60,
      expires_at: later(60_000),
      timeout_seconds: 42,
      max_retries: 7,
      retry_count: 0,
      attempt: 0,
      halts_workflow: false,
      cost: { tokens: 1200 },
      user_id: 'user',
      tags: ['x', 'y'],
      trace_id: 'trace',
      past_attempts: [],
    });
    const [inputs] = await db().query<{ text: string }>(
      'select parameters::text as text from sluice.task_inputs where task_id = $1',
      [task.taskId],
    );
    expect(inputs?.text).toBe(task.parametersJson);
  });

  it('R-CH1: rows are in the order of the array by seq, though they share one instant', async () => {
    const tasks = newTasks(500);
    const shuffled = tasks.toSorted(() => 0.5 - Math.random());
    const answers = await submitTasks(db(), shuffled, now);
    expect(answers.map((answer) => answer.taskId)).toEqual(shuffled.map((task) => task.taskId));
    const seqs = created(answers).map((answer) => answer.seq);
    expect(seqs).toEqual(seqs.toSorted((one, other) => one - other));
    const rows = await db().query<{ id: string }>('select id from sluice.tasks order by seq');
    expect(rows.map((row) => row.id)).toEqual(shuffled.map((task) => task.taskId));
  });

  it('R-CH12: what its process does not offer is due at once, for whoever serves', async () => {
    const answer = await submitOne(db(), { isOffered: false }, now);
    expect(answer).toMatchObject({ status: 'pending', waitsFor: 'time' });
    expect(await rowOf(db(), answer.taskId)).toMatchObject({
      status: 'pending',
      queued_at: null,
      run_at: now,
      eligible_at: now,
    });
  });

  it('R-CH11: a time in the future makes it wait, one in the past does not', async () => {
    const [runAt, delay, past, none] = await submitTasks(
      db(),
      [
        newTask({ runAt: later(5_000), dispatchDeadlineSeconds: 10 }),
        newTask({ delaySeconds: 1.5 }),
        newTask({ runAt: later(-5_000) }),
        newTask({ delaySeconds: 0 }),
      ],
      now,
    );
    const waiting = { status: 'pending', waitsFor: 'time' };
    expect(runAt).toMatchObject({ ...waiting, eligibleAtMs: later(5_000).getTime() });
    expect(delay).toMatchObject({ ...waiting, eligibleAtMs: later(1_500).getTime() });
    expect(past).toMatchObject({ status: 'queued', waitsFor: null, eligibleAtMs: now.getTime() });
    expect(none).toMatchObject({ status: 'queued', waitsFor: null, eligibleAtMs: now.getTime() });
    const row = runAt && (await rowOf(db(), runAt.taskId));
    expect(row).toMatchObject({ run_at: later(5_000), expires_at: later(15_000) });
  });

  it('an empty batch is answered with nothing', async () => {
    expect(await submitTasks(db(), [], null)).toEqual([]);
  });

  it('a batch that holds a bad row inserts nothing', async () => {
    const tasks = [newTask(), newTask({ parametersJson: 'not json' }), newTask()];
    await expect(submitTasks(db(), tasks, null)).rejects.toThrow('json');
    expect(await db().query('select from sluice.tasks')).toEqual([]);
    expect(await db().query('select from sluice.task_inputs')).toEqual([]);
  });

  it('R-ST4: the same key again is the same task, wherever it has got to', async () => {
    const first = await submitOne(db(), { idempotency: newKey('k'), trace: 'first' }, now);
    const again = { idempotency: newKey('k'), trace: 'second', priority: 'high' } as const;
    const existing = {
      kind: 'existing',
      taskId: first.taskId,
      queue: 'default',
      priority: 'medium',
      trace: 'first',
      createdAt: now,
    };
    expect(await submitOne(db(), again, now)).toEqual({ ...existing, status: 'queued' });

    const claimed = await claimOne(db(), first.taskId);
    expect(await submitOne(db(), again, now)).toEqual({ ...existing, status: 'executing' });
    await completeTasks(db(), [completionOf(claimed)], null);
    expect(await submitOne(db(), again, now)).toEqual({ ...existing, status: 'completed' });
    expect(await count('tasks')).toBe(0);
    expect(await count('task_inputs')).toBe(1);
  });

  it('R-ST4: the same key with another body is a conflict and inserts nothing', async () => {
    const first = await submitOne(db(), { idempotency: newKey('k', 'one') });
    const other = await submitOne(db(), { idempotency: newKey('k', 'two') });
    expect(other).toEqual({ kind: 'conflict', taskId: first.taskId });
    expect(await count('tasks')).toBe(1);
  });

  it('R-ST4: a key is scoped to its owner', async () => {
    await submitOne(db(), { idempotency: newKey('k', 'one', 'alice') });
    const other = await submitOne(db(), { idempotency: newKey('k', 'two', 'bob') });
    expect(other.kind).toBe('created');
  });

  it('R-ST4: a key holds for 24 hours, then it is taken over', async () => {
    const idempotency = newKey('k');
    const first = await submitOne(db(), { idempotency }, now);
    const before = await submitOne(db(), { idempotency }, later(day - 1));
    expect(before).toMatchObject({ kind: 'existing', taskId: first.taskId });
    const after = await submitOne(db(), { idempotency: newKey('k', 'other') }, later(day));
    expect(after.kind).toBe('created');
    const now24 = await submitOne(db(), { idempotency: newKey('k', 'other') }, later(day + 1));
    expect(now24).toMatchObject({ kind: 'existing', taskId: after.taskId });
  });

  it('R-ST4: of one key twice in a batch the first wins; those without a key are untouched', async () => {
    const tasks = [
      newTask(),
      newTask({ idempotency: newKey('k') }),
      newTask({ idempotency: newKey('k') }),
      newTask({ idempotency: newKey('k', 'other') }),
      newTask({ idempotency: newKey('l') }),
      newTask(),
    ];
    const answers = await submitTasks(db(), tasks, null);
    expect(answers.map((answer) => answer.kind)).toEqual([
      'created',
      'created',
      'existing',
      'conflict',
      'created',
      'created',
    ]);
    expect(answers[2]?.taskId).toBe(tasks[1]?.taskId);
    expect(answers[3]?.taskId).toBe(tasks[1]?.taskId);
    expect(await count('tasks')).toBe(4);
    expect(await count('task_inputs')).toBe(4);
  });

  it('R-ST4: a key that outlived its task is still answered', async () => {
    const idempotency = newKey('k');
    const task = await runOne(db(), { idempotency, queue: 'gpt' });
    await completeTasks(db(), [completionOf(task)], null);
    await db().run('truncate sluice.task_history');
    const answer = await submitOne(db(), { idempotency, queue: 'gpt' });
    expect(answer).toMatchObject({
      kind: 'existing',
      taskId: task.taskId,
      status: 'completed',
      queue: 'gpt',
    });
  });

  async function count(table: string): Promise<number> {
    const [row] = await db().query<{ count: number }>(
      `select count(*) as count from sluice.${table}`,
    );
    return row?.count ?? NaN;
  }
});

describeOnPostgres('submitTasks', (postgres) => {
  it('R-ST4: 100 submits at once with one key, over two servers, make one task', async () => {
    const db = await postgres().openPatient(10);
    const other = await postgres().openPatient(10);
    for (let round = 0; round < 10; round += 1) {
      const idempotency = newKey(`k${round}`);
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, n) => submitOne(n % 2 === 0 ? db : other, { idempotency })),
      );
      const [winner, ...others] = created(answers);
      expect(others).toEqual([]);
      expect(new Set(answers.map((answer) => answer.taskId))).toEqual(new Set([winner?.taskId]));
      const [row] = await db.query<{ count: number }>(
        'select count(*) as count from sluice.tasks where idempotency_key = $1',
        [`k${round}`],
      );
      expect(row?.count).toBe(1);
    }
  });

  it('R-ST4: batches with the same keys in opposite order don’t deadlock', async () => {
    const pools = [await postgres().openPatient(), await postgres().openPatient()];
    for (let round = 0; round < 20; round += 1) {
      const keys = Array.from({ length: 50 }, (_, n) => `k${round}-${n}`);
      const answers = await Promise.all(
        [keys, keys.toReversed()].map((order, n) =>
          submitTasks(
            pools[n] ?? postgres().db,
            order.map((key) => newTask({ idempotency: newKey(key) })),
            null,
          ),
        ),
      );
      expect(created(answers.flat())).toHaveLength(keys.length);
    }
  });

  it('R-ST4: a key whose submit rolled back is free', async () => {
    const task = newTask({ idempotency: newKey('k') });
    const broken: NewTask = { ...task, taskId: newTaskId(), parametersJson: '{' };
    await expect(submitTasks(postgres().db, [broken], null)).rejects.toThrow('json');
    expect(await submitTasks(postgres().db, [task], null)).toMatchObject([{ kind: 'created' }]);
  });
});

function created(answers: readonly Submitted[]): Extract<Submitted, { kind: 'created' }>[] {
  return answers.filter((answer) => answer.kind === 'created');
}
