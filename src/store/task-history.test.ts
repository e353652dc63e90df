import { randomUUID } from 'node:crypto';

import { expect, it } from 'vitest';

import { claimOf } from '../../test/store/lifecycle.js';
import { atSecond, zero } from '../../test/store/seed.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import { IdSource, type TaskId, type WorkerId } from '../domain/ids.js';
import type { TaskHistory, TaskView } from '../protocol/tasks-api.js';
import { cancelTasks } from './cancel-tasks.js';
import { claimTasks } from './claim-tasks.js';
import { endAttempts, type AttemptEnd } from './end-attempts.js';
import { wakeDue } from './feed-line.js';
import { completeTasks } from './finish-tasks.js';
import { findTask } from './read-tasks.js';
import { startTasks } from './start-tasks.js';
import { submitTasks } from './submit-tasks.js';

const ids = new IdSource();
const workerId = randomUUID() as WorkerId;
const lane = { queue: 'q', taskType: 'chat', capabilities: [] };
const broken = { code: 'BROKEN', message: 'nul \u0000', retriable: true };

describeOnEveryDatabase('the history of a task', (db) => {
  it('a first-try success is told from its columns', async () => {
    const taskId = await submit(true);
    const held = await claim(taskId, 1, true);
    await completeTasks(
      db(),
      [{ ...held, resultJson: '{"a":1}', usageJson: '{"tokens":3}', executionSeconds: 1 }],
      atSecond(3),
    );
    const task = await get(taskId, 4);
    expect(task).toMatchObject({
      status: 'completed',
      result: { a: 1 },
      usage: { tokens: 3 },
      startedAt: atSecond(1),
      completedAt: atSecond(3),
      currentStateDurationSeconds: 1,
    });
    expect(task.history).toEqual({
      states: [
        { state: 'queued', at: zero },
        { state: 'executing', at: atSecond(1), workerId, attempt: 1 },
        { state: 'completed', at: atSecond(3) },
      ],
      attempts: [
        {
          attempt: 1,
          workerId,
          startedAt: atSecond(1),
          endedAt: atSecond(3),
          outcome: 'succeeded',
        },
      ],
    } satisfies TaskHistory);
    const [row] = await db().query<{ kept: number }>(
      'select cardinality(past_attempts) as kept from sluice.task_history',
    );
    expect(row?.kept).toBe(0);
  });

  it('a retry, then success', async () => {
    const taskId = await submit(false);
    await feed(1);
    const first = await claim(taskId, 2, false);
    await startTasks(db(), [first], atSecond(3));
    await end({ ...first, outcome: 'failed', error: broken, next: back }, 4);
    await feed(5);
    const second = await claim(taskId, 6, true);
    await completeTasks(
      db(),
      [{ ...second, resultJson: null, usageJson: null, executionSeconds: null }],
      atSecond(7),
    );
    const { history, retryCount } = await get(taskId, 8);
    expect(retryCount).toBe(1);
    expect(history).toEqual({
      states: [
        { state: 'pending', at: zero },
        { state: 'queued', at: atSecond(1) },
        { state: 'assigned', at: atSecond(2), workerId, attempt: 1 },
        { state: 'executing', at: atSecond(3), workerId, attempt: 1 },
        { state: 'pending', at: atSecond(4), reason: 'failed' },
        { state: 'queued', at: atSecond(5) },
        { state: 'executing', at: atSecond(6), workerId, attempt: 2 },
        { state: 'completed', at: atSecond(7) },
      ],
      attempts: [
        {
          attempt: 1,
          workerId,
          startedAt: atSecond(3),
          endedAt: atSecond(4),
          outcome: 'failed',
          error: broken,
        },
        {
          attempt: 2,
          workerId,
          startedAt: atSecond(6),
          endedAt: atSecond(7),
          outcome: 'succeeded',
        },
      ],
    } satisfies TaskHistory);
  });

  it('a dead letter says why', async () => {
    const taskId = await submit(true);
    const held = await claim(taskId, 1, true);
    const next = { kind: 'dead_letter', reason: 'all 3 retries are spent' } as const;
    await end({ ...held, outcome: 'failed', error: broken, next }, 2);
    const task = await get(taskId, 5);
    expect(task).toMatchObject({
      status: 'dead_letter',
      error: broken,
      completedAt: atSecond(2),
      currentStateDurationSeconds: 3,
    });
    expect(task.history?.states.slice(1)).toEqual([
      { state: 'executing', at: atSecond(1), workerId, attempt: 1 },
      { state: 'dead_letter', at: atSecond(2), reason: 'all 3 retries are spent' },
    ]);
    expect(task.history?.attempts).toMatchObject([{ outcome: 'failed', error: broken }]);
  });

  it('cancelled while running', async () => {
    const taskId = await submit(true);
    await claim(taskId, 1, true);
    await cancelTasks(db(), [taskId], atSecond(2));
    const { history } = await get(taskId, 3);
    expect(history?.states).toEqual([
      { state: 'queued', at: zero },
      { state: 'executing', at: atSecond(1), workerId, attempt: 1 },
      { state: 'cancelled', at: atSecond(2) },
    ]);
    expect(history?.attempts).toMatchObject([{ attempt: 1, outcome: 'cancelled' }]);
  });

  it('cancelled in line', async () => {
    const taskId = await submit(true);
    await cancelTasks(db(), [taskId], atSecond(2));
    const { history } = await get(taskId, 3);
    expect(history).toEqual({
      states: [
        { state: 'queued', at: zero },
        { state: 'cancelled', at: atSecond(2) },
      ],
      attempts: [],
    });
  });

  it('released before it was started', async () => {
    const taskId = await submit(true);
    const held = await claim(taskId, 1, false);
    const next = { ...back, costsRetry: false, countsAs: 'return' } as const;
    await end({ ...held, outcome: 'released', error: null, next }, 2);
    const task = await get(taskId, 3);
    expect(task).toMatchObject({ status: 'pending', retryCount: 0, attempt: 1 });
    expect(task.history).toEqual({
      states: [
        { state: 'queued', at: zero },
        { state: 'assigned', at: atSecond(1), workerId, attempt: 1 },
        { state: 'pending', at: atSecond(2), reason: 'released' },
      ],
      attempts: [
        {
          attempt: 1,
          workerId,
          startedAt: atSecond(1),
          endedAt: atSecond(2),
          outcome: 'released',
        },
      ],
    } satisfies TaskHistory);
  });

  const back = {
    kind: 'pending',
    delayMs: 0,
    costsRetry: true,
    countsAs: null,
    timeoutSeconds: 600,
  } as const;

  async function submit(isOffered: boolean): Promise<TaskId> {
    const taskId = ids.nextTaskId(zero.getTime());
    await submitTasks(
      db(),
      [
        {
          taskId,
          ...lane,
          priority: 'medium',
          parametersJson: '{}',
          timeoutSeconds: 600,
          maxRetries: 3,
          owner: null,
          runAt: null,
          delaySeconds: null,
          dispatchDeadlineSeconds: null,
          workflowId: null,
          haltsWorkflow: true,
          idempotency: null,
          costJson: null,
          userId: null,
          tags: [],
          trace: null,
          isOffered,
          passesCeilings: false,
          claim: null,
        },
      ],
      zero,
    );
    return taskId;
  }

  async function feed(second: number): Promise<void> {
    await wakeDue(db(), 1, atSecond(second));
  }

  async function claim(taskId: TaskId, second: number, start: boolean) {
    const [row] = await claimTasks(
      db(),
      [claimOf(taskId, { workerId, start })],
      0,
      30_000,
      atSecond(second),
    );
    if (row === undefined) throw new Error(`task ${taskId} could not be claimed`);
    return { taskId, lease: row.lease };
  }

  async function end(ending: AttemptEnd, second: number): Promise<void> {
    expect(await endAttempts(db(), [ending], atSecond(second))).toHaveLength(1);
  }

  async function get(taskId: TaskId, second: number): Promise<TaskView> {
    const task = await findTask(db(), taskId, true, atSecond(second));
    if (task === null) throw new Error(`task ${taskId} was not found`);
    return task;
  }
});
