import { SluiceError } from '../domain/errors.js';
import type { TaskId } from '../domain/ids.js';
import { grantIn } from '../domain/lease.js';
import { isLeased } from '../domain/task-state.js';
import type { BulkRequest, CancelledTasks } from '../protocol/bulk-api.js';
import { bounds } from '../protocol/bounds.js';
import type { Cancellation, TaskFilter } from '../protocol/tasks-api.js';
import { cancelTasks, type CancelledRow } from '../store/cancel-tasks.js';
import { findCancellable, type CancelCursor } from '../store/find-in-bulk.js';
import { findStates, findTask } from '../store/read-tasks.js';
import { decodeBulkCursor, encodeBulkCursor } from './bulk-cursor.js';
import { inBatches, maxWalksInOneCall } from './bulk.js';
import { instant, patiently, tell, tokensUsed, type EngineContext } from './context.js';
import type { Feeder } from './feeder.js';
import type { Fleet } from './fleet.js';
import type { News } from './news.js';
import { taskNotFound } from './read.js';
import type { Slots } from './slots.js';

export interface CancelParts {
  readonly fleet: Fleet;
  readonly news: News;
  readonly feeder: Feeder;
  readonly slots: Slots;
}

/** Ends tasks because somebody asked; a worker that runs one is told at once. */
export class Cancel {
  readonly #context: EngineContext;
  readonly #fleet: Fleet;
  readonly #news: News;
  readonly #feeder: Feeder;
  readonly #slots: Slots;

  constructor(context: EngineContext, parts: CancelParts) {
    this.#context = context;
    this.#fleet = parts.fleet;
    this.#news = parts.news;
    this.#feeder = parts.feeder;
    this.#slots = parts.slots;
  }

  async cancelTask(taskId: TaskId): Promise<Cancellation> {
    const [row] = await this.#cancel([taskId]);
    if (row !== undefined) {
      const wasExecuting = isLeased(row.from);
      return { taskId, wasExecuting, workerNotified: this.#isKnown(row) };
    }
    const state = (await findStates(this.#context.db, [taskId])).get(taskId);
    if (state === undefined) throw taskNotFound(taskId);
    if (state === 'cancelled') return this.#cancelledBefore(taskId);
    throw new SluiceError('task_ended', `Task ${taskId} has already ended as ${state}.`);
  }

  /** Asked again, the answer is the same. */
  async #cancelledBefore(taskId: TaskId): Promise<Cancellation> {
    const task = await findTask(this.#context.db, taskId, true, instant(this.#context));
    const attempt = task?.history?.attempts.at(-1);
    const wasExecuting =
      attempt?.outcome === 'cancelled' &&
      attempt.endedAt.getTime() === task?.completedAt?.getTime();
    const workerNotified = wasExecuting && this.#fleet.find(attempt.workerId) !== null;
    return { taskId, wasExecuting, workerNotified };
  }

  async cancelTasks(filter: TaskFilter, request: BulkRequest): Promise<CancelledTasks> {
    const { limit, cursor } = request;
    const isBounded = limit !== undefined || cursor !== undefined;
    const { done, next } = await inBatches<CancelCursor>({
      find: (most, after) => findCancellable(this.#context.db, filter, most, after),
      act: async (taskIds) => (await this.#cancel(taskIds)).length,
      limit: isBounded ? (limit ?? bounds.bulkTasks) : Infinity,
      walks: isBounded ? maxWalksInOneCall : Infinity,
      after: cursor === undefined ? null : decodeBulkCursor(cursor, filter.workflowId),
    });
    return { cancelled: done, nextCursor: next === null ? null : encodeBulkCursor(next) };
  }

  async #cancel(taskIds: readonly TaskId[]): Promise<readonly CancelledRow[]> {
    if (taskIds.length === 0) return [];
    const { db, ready } = this.#context;
    const rows = await patiently(() => cancelTasks(db, taskIds, instant(this.#context)));
    await ready.remove(rows.map(({ taskId }) => taskId));
    await this.#slots.free(
      rows.flatMap(({ taskId, lease, queue, cost }) => {
        if (lease === null) return [];
        return { taskId, grant: grantIn(lease), queue, reserved: cost, usage: null };
      }),
    );
    for (const row of rows) this.#tell(row);
    return rows;
  }

  #tell(row: CancelledRow): void {
    const { taskId, queue, taskType, priority, from, attempt, trace } = row;
    const { workerId, workflowId } = row;
    if (workerId !== null) this.#news.tell({ kind: 'cancelled', workerId, taskId });
    if (workflowId !== null) this.#feeder.noteDue(0);
    const end = isLeased(from)
      ? ({ outcome: 'cancelled', ...tokensUsed(row.cost, null) } as const)
      : {};
    const worker = workerId === null ? {} : { workerId };
    const move = { from, to: 'cancelled', attempt, trace, ...worker } as const;
    tell(this.#context, { taskId, queue, taskType, priority, ...move, ...end });
  }

  /** Where several processes serve, the one that its worker polls hears of it, whichever that is. */
  #isKnown({ workerId }: CancelledRow): boolean {
    if (workerId === null) return false;
    return this.#context.mode !== 'memory' || this.#fleet.find(workerId) !== null;
  }
}
