import { randomUUID } from 'node:crypto';

import { IdSource, type Lease, type TaskId, type WorkerId } from '../../src/domain/ids.js';
import type { Held } from '../../src/protocol/workers-api.js';
import {
  claimTasks,
  type Claim,
  type ClaimedRow,
  type KnownTask,
} from '../../src/store/claim-tasks.js';
import type { Database, Instant, Queryable } from '../../src/store/database.js';
import type { AttemptEnd } from '../../src/store/end-attempts.js';
import type { Completion, KnownAttempt } from '../../src/store/finish-tasks.js';
import type { Created, NewTask, Submitted } from '../../src/store/new-task.js';
import { submitTasks } from '../../src/store/submit-tasks.js';

const ids = new IdSource();

export function newTaskId(): TaskId {
  return ids.nextTaskId(Date.now());
}

export function newWorkerId(): WorkerId {
  return randomUUID() as WorkerId;
}

export function newLease(): Lease {
  return randomUUID() as string as Lease;
}

/** A task as a serving engine would submit it. */
export function newTask(changes: Partial<NewTask> = {}): NewTask {
  return {
    taskId: newTaskId(),
    queue: 'default',
    taskType: 'chat',
    capabilities: [],
    priority: 'medium',
    parametersJson: '{"n":1}',
    timeoutSeconds: 600,
    maxRetries: 3,
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
    owner: null,
    isOffered: true,
    passesCeilings: false,
    claim: null,
    ...changes,
  };
}

export function newTasks(count: number, changes: Partial<NewTask> = {}): NewTask[] {
  return Array.from({ length: count }, () => newTask(changes));
}

export function newKey(key: string, body = 'body', scope = 'owner'): NewTask['idempotency'] {
  return { scope, key, fingerprint: Buffer.from(body) };
}

export async function submitOne(
  db: Database,
  changes: Partial<NewTask> = {},
  now: Instant = null,
): Promise<Submitted> {
  const [submitted] = await submitTasks(db, [newTask(changes)], now);
  if (submitted === undefined) throw new Error('nothing was answered');
  return submitted;
}

export function claimOf(taskId: TaskId, changes: Partial<Claim> = {}): Claim {
  return { taskId, workerId: newWorkerId(), lease: newLease(), start: true, ...changes };
}

/** What the process that submitted a task knows of it. */
export function knownTask(
  task: NewTask,
  { eligibleAtMs }: Pick<Created, 'eligibleAtMs'>,
): KnownTask {
  const { queue, taskType, priority, parametersJson, timeoutSeconds, trace, costJson } = task;
  const cost = costJson === null ? {} : (JSON.parse(costJson) as KnownTask['cost']);
  return { queue, taskType, priority, parametersJson, timeoutSeconds, trace, cost, eligibleAtMs };
}

/** Submitted, and claims that know what was: in order. */
export async function submitKnown(
  db: Database,
  tasks: readonly NewTask[],
  now: Instant = null,
): Promise<Claim[]> {
  const submitted = await submitTasks(db, tasks, now);
  return tasks.map((task, index) => {
    const answer = submitted[index];
    if (answer?.kind !== 'created') throw new Error(`${task.taskId} was not let in`);
    return claimOf(task.taskId, { known: knownTask(task, answer) });
  });
}

/** What the process that claimed a task, straight into executing, knows of the attempt. */
export function knownAttempt(row: ClaimedRow, capabilities: readonly string[] = []): KnownAttempt {
  const { queue, taskType, priority, cost, workerId, attempt, trace } = row;
  const { lapsesAt, timeoutSeconds } = row;
  const lane = { queue, taskType, capabilities };
  const startedAtMs = lapsesAt.getTime() - timeoutSeconds * 1000;
  return { lane, priority, cost, workerId, attempt, trace, startedAtMs };
}

export async function claimOne(
  db: Queryable,
  taskId: TaskId,
  changes: Partial<Claim> = {},
  now: Instant = null,
): Promise<ClaimedRow> {
  const [claimed] = await claimTasks(db, [claimOf(taskId, changes)], 0, 30_000, now);
  if (claimed === undefined) throw new Error(`${taskId} was refused`);
  return claimed;
}

/** Submitted and claimed: an attempt that runs. */
export async function runOne(
  db: Database,
  changes: Partial<NewTask> = {},
  claim: Partial<Claim> = {},
  now: Instant = null,
): Promise<ClaimedRow> {
  const { taskId } = await submitOne(db, changes, now);
  return claimOne(db, taskId, claim, now);
}

export function completionOf(
  { taskId, lease }: Held,
  changes: Partial<Completion> = {},
): Completion {
  return { taskId, lease, resultJson: null, usageJson: null, executionSeconds: null, ...changes };
}

export function knownCompletionOf(row: ClaimedRow, changes: Partial<Completion> = {}): Completion {
  return completionOf(row, { known: knownAttempt(row), ...changes });
}

export function backToPending(
  { taskId, lease }: Held,
  changes: Partial<Extract<AttemptEnd['next'], { kind: 'pending' }>> = {},
): AttemptEnd {
  return {
    taskId,
    lease,
    outcome: 'failed',
    error: { code: 'BROKEN', message: 'it broke', retriable: true },
    next: {
      kind: 'pending',
      delayMs: 0,
      costsRetry: true,
      countsAs: null,
      timeoutSeconds: 600,
      ...changes,
    },
  };
}

export function toDeadLetter({ taskId, lease }: Held): AttemptEnd {
  return {
    taskId,
    lease,
    outcome: 'failed',
    error: { code: 'BROKEN', message: 'it broke', retriable: false },
    next: { kind: 'dead_letter', reason: 'BROKEN is not retried' },
  };
}

/** The row as it stands, or undefined when it is no longer among the living. */
export async function rowOf(db: Queryable, taskId: TaskId): Promise<Row | undefined> {
  const [row] = await db.query<Row>('select * from sluice.tasks where id = $1', [taskId]);
  return row;
}

export async function historyOf(db: Queryable, taskId: TaskId): Promise<Row | undefined> {
  const [row] = await db.query<Row>('select * from sluice.task_history where id = $1', [taskId]);
  return row;
}

export type Row = Readonly<Record<string, unknown>>;
