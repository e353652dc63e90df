import { randomUUID } from 'node:crypto';

import { IdSource, type Lease, type TaskId, type WorkerId } from '../../src/domain/ids.js';
import { rankOf, type Priority } from '../../src/domain/priority.js';
import type { TaskState, WaitsFor } from '../../src/domain/task-state.js';
import type { Queryable } from '../../src/store/database.js';

const ids = new IdSource();

/** A day that has partitions, at a round instant: seconds from it read well in a test. */
export const zero = new Date(Math.floor(Date.now() / 1000) * 1000);

export function atSecond(seconds: number): Date {
  return new Date(zero.getTime() + seconds * 1000);
}

export interface Seed {
  readonly status?: Exclude<TaskState, 'completed' | 'cancelled'>;
  readonly waitsFor?: WaitsFor;
  readonly queue?: string;
  readonly taskType?: string;
  readonly priority?: Priority;
  readonly workerId?: WorkerId;
  readonly lapsesAt?: Date;
  readonly eligibleAt?: Date;
  readonly runAt?: Date;
  readonly deadlineSeconds?: number;
  readonly workflowId?: string;
  readonly haltsWorkflow?: boolean;
  readonly attempt?: number;
  readonly returns?: number;
  readonly userId?: string;
  readonly tags?: readonly string[];
  readonly parameters?: unknown;
  readonly error?: { code: string; message: string; retriable: boolean; details?: unknown };
  readonly endedAt?: Date;
}

export interface Seeded {
  readonly taskId: TaskId;
  readonly lease: Lease;
  readonly workerId: WorkerId;
}

/** A task in the state asked for, put there without the way that leads to it. */
export async function seedTask(db: Queryable, seed: Seed = {}): Promise<Seeded> {
  const taskId = ids.nextTaskId(zero.getTime());
  const lease = randomUUID() as Lease;
  const workerId = seed.workerId ?? (randomUUID() as WorkerId);
  const status = seed.status ?? 'queued';
  const held = status === 'assigned' || status === 'executing';
  const ended = status === 'dead_letter' || status === 'failed';
  const eligibleAt = seed.eligibleAt ?? zero;
  const waitsFor = status === 'pending' ? (seed.waitsFor ?? 'time') : null;
  const deadline = seed.deadlineSeconds ?? null;
  const error = seed.error ?? { code: 'BROKEN', message: 'it broke', retriable: true };
  if (seed.workflowId !== undefined) {
    await db.query('insert into sluice.workflows (id) values ($1) on conflict do nothing', [
      seed.workflowId,
    ]);
  }
  await db.query(
    `with input as (
       insert into sluice.task_inputs (task_id, parameters) values ($1, $2::json)
     )
     insert into sluice.tasks
       (id, queue, task_type, priority, status, waits_for, created_at, eligible_at, run_at,
        queued_at, assigned_at, started_at, lapses_at, ended_at, dispatch_deadline_seconds,
        expires_at, timeout_seconds, max_retries, attempt, returns, lease, worker_id, workflow_id,
        halts_workflow, user_id, tags, error)
     values ($1, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, 600, 3, $18,
       $19, $20, $21, $22, $23, $24, $25, $26::json)`,
    [
      taskId,
      JSON.stringify(seed.parameters ?? { n: 1 }),
      seed.queue ?? 'default',
      seed.taskType ?? 'chat',
      rankOf(seed.priority ?? 'medium'),
      status,
      waitsFor,
      zero,
      eligibleAt,
      seed.runAt ?? (waitsFor === 'time' ? eligibleAt : null),
      status === 'queued' || held ? eligibleAt : null,
      held ? eligibleAt : null,
      status === 'executing' ? eligibleAt : null,
      held ? (seed.lapsesAt ?? atSecond(600)) : null,
      ended ? (seed.endedAt ?? zero) : null,
      deadline,
      deadline === null ? null : new Date(eligibleAt.getTime() + deadline * 1000),
      seed.attempt ?? (held ? 1 : 0),
      seed.returns ?? 0,
      held ? lease : null,
      held ? workerId : null,
      seed.workflowId ?? null,
      seed.haltsWorkflow ?? true,
      seed.userId ?? null,
      seed.tags ?? [],
      ended ? JSON.stringify(error) : null,
    ],
  );
  return { taskId, lease, workerId };
}

/** Without parameters, and all of them newer than what was seeded before. */
export async function seedBulk(db: Queryable, count: number): Promise<void> {
  await db.query(
    `insert into sluice.tasks
       (id, queue, task_type, priority, status, created_at, eligible_at, queued_at,
        timeout_seconds, max_retries)
     select ('ffffffff-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid,
       'common', 'chat', 1, 'queued', $2, $2, $2, 600, 3
     from generate_series(1, $1::int) n`,
    [count, zero],
  );
}
