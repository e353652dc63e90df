import { SluiceError } from '../domain/errors.js';
import type { TaskId } from '../domain/ids.js';
import type { Priority } from '../domain/priority.js';
import { scheduleFaults, type Schedule } from '../domain/schedule.js';
import type {
  DeadLetterFilter,
  DeadLetterReplay,
  ReplayedDeadLetters,
} from '../protocol/dead-letters-api.js';
import { invalidField, invalidRequest } from '../protocol/problem-wire.js';
import { bounds } from '../protocol/bounds.js';
import type { BulkReplay, BulkReprioritise, ReprioritisedTasks } from '../protocol/bulk-api.js';
import type { ReplayRequest, TaskFilter } from '../protocol/tasks-api.js';
import { changeTask, changeTasks, type ChangedTask } from '../store/change-task.js';
import { findDeadLetters } from '../store/dead-letters.js';
import { findReplayable, findWaiting, type Found } from '../store/find-in-bulk.js';
import { decodeIdCursor, encodeCursor } from '../store/paging.js';
import { findStates } from '../store/read-tasks.js';
import { replayTasks } from '../store/replay-tasks.js';
import { inBatches, maxAtOnce, maxWalksInOneCall } from './bulk.js';
import { approximateNow, instant, patiently, tell, type EngineContext } from './context.js';
import type { Feeder } from './feeder.js';
import { taskNotFound } from './read.js';
import { decodeReplayCursor, encodeReplayCursor } from './replay-cursor.js';

type Find = (limit: number, after: TaskId | null) => Promise<Found>;

const defaultPerSecond = 100;

/** Puts tasks back in line: ended ones again, waiting ones at another time or priority. */
export class Replay {
  readonly #context: EngineContext;
  readonly #feeder: Feeder;

  constructor(context: EngineContext, feeder: Feeder) {
    this.#context = context;
    this.#feeder = feeder;
  }

  async replayTask(taskId: TaskId, request: ReplayRequest): Promise<void> {
    if ((await this.#replay([taskId], request)) === 1) return;
    const state = (await findStates(this.#context.db, [taskId])).get(taskId);
    if (state === undefined) throw taskNotFound(taskId);
    if (state === 'completed') {
      throw new SluiceError(
        'task_completed',
        `Task ${taskId} completed; submit a new one instead.`,
      );
    }
    if (state === 'cancelled') {
      const detail = `The parameters of task ${taskId} are no longer kept; submit a new one instead.`;
      throw new SluiceError('task_not_found', detail);
    }
    throw new SluiceError('task_not_ended', `Task ${taskId} is ${state}; it has not ended yet.`);
  }

  replayDeadLetters(
    filter: DeadLetterFilter,
    request: DeadLetterReplay,
  ): Promise<ReplayedDeadLetters> {
    const { db } = this.#context;
    return this.#replayFound(
      (limit, after) => findDeadLetters(db, filter, limit, after ?? undefined),
      request,
    );
  }

  replayTasks(filter: TaskFilter, request: BulkReplay): Promise<ReplayedDeadLetters> {
    const { db } = this.#context;
    return this.#replayFound((limit, after) => findReplayable(db, filter, limit, after), request);
  }

  /**
   * Spread over time by when each is due, which is written with the replay: a crash in between leaves
   * some replayed and the rest dead letters, and loses nothing.
   */
  async #replayFound(find: Find, request: BulkReplay): Promise<ReplayedDeadLetters> {
    const { perSecond = defaultPerSecond, limit = bounds.bulkTasks, cursor, ...how } = request;
    const spacingMs = 1000 / checkedRate(perSecond);
    const from = cursor === undefined ? null : decodeReplayCursor(cursor);
    let dueMs = Math.max(from?.dueMs ?? 0, approximateNow(this.#context).getTime());
    let after = from?.after ?? null;
    let left = limit;
    let replayed = 0;
    for (let batch = 0; batch < maxWalksInOneCall && left > 0; batch += 1) {
      const { taskIds, next } = await find(Math.min(maxAtOnce, left), after);
      const firstDueMs = dueMs;
      if (this.#isTooFar(firstDueMs + taskIds.length * spacingMs)) {
        if (batch === 0) throw this.#tooSlow(perSecond);
        break;
      }
      const dueAt = taskIds.map((_, index) => new Date(firstDueMs + index * spacingMs));
      replayed += await this.#replay(taskIds, how, dueAt);
      dueMs += taskIds.length * spacingMs;
      left -= taskIds.length;
      after = next;
      if (after === null) break;
    }
    return {
      replayed,
      lastDueAt: replayed === 0 ? null : new Date(dueMs - spacingMs),
      nextCursor: after === null ? null : encodeReplayCursor({ after, dueMs }),
    };
  }

  async changeTask(
    taskId: TaskId,
    change: { readonly priority?: Priority; readonly runAt?: Date },
  ): Promise<void> {
    const { db } = this.#context;
    this.#refuseTooFar(change);
    const answer = await patiently(() => changeTask(db, taskId, change, instant(this.#context)));
    switch (answer.kind) {
      case 'missing':
        throw taskNotFound(taskId);
      case 'started':
        throw new SluiceError(
          'task_started',
          `Task ${taskId} has started; it can't be changed now.`,
        );
      case 'ended':
        throw new SluiceError('task_ended', `Task ${taskId} has ended; replay it instead.`);
      case 'changed':
        await this.#moveBack([answer.changed]);
        this.#feeder.noteDue(Math.max(0, (change.runAt?.getTime() ?? 0) - db.nowMs()));
    }
  }

  async reprioritiseTasks(
    filter: TaskFilter,
    { newPriority, limit = bounds.bulkTasks, cursor }: BulkReprioritise,
  ): Promise<ReprioritisedTasks> {
    const { db } = this.#context;
    const { done, next } = await inBatches<TaskId>({
      find: (most, after) => findWaiting(db, filter, most, { after, priority: newPriority }),
      act: (taskIds) => this.#reprioritise(taskIds, newPriority),
      limit,
      walks: maxWalksInOneCall,
      after: cursor === undefined ? null : decodeIdCursor(cursor),
    });
    return { reprioritised: done, nextCursor: next === null ? null : encodeCursor(next) };
  }

  async #reprioritise(taskIds: readonly TaskId[], priority: Priority): Promise<number> {
    if (taskIds.length === 0) return 0;
    const { db } = this.#context;
    const changed = await patiently(() =>
      changeTasks(db, taskIds, { priority }, instant(this.#context)),
    );
    await this.#moveBack(changed);
    this.#feeder.noteDue(0);
    return changed.length;
  }

  /** What was queued has left the line; it is due, and the feeder brings it back. */
  async #moveBack(changed: readonly ChangedTask[]): Promise<void> {
    const moved = changed.filter(({ wasQueued }) => wasQueued);
    if (moved.length === 0) return;
    await this.#context.ready.remove(moved.map(({ taskId }) => taskId));
    for (const { taskId, window, trace } of moved) {
      const { queue, taskType } = window.lane;
      const move = { from: 'queued', to: 'pending', attempt: 0, trace, reason: 'changed' } as const;
      tell(this.#context, { taskId, queue, taskType, priority: window.priority, ...move });
    }
  }

  #isTooFar(dueMs: number): boolean {
    const { maxScheduleDays } = this.#context.settings;
    const runAt = new Date(dueMs);
    const nowMs = approximateNow(this.#context).getTime();
    return scheduleFaults({ runAt }, nowMs, maxScheduleDays).length > 0;
  }

  #tooSlow(perSecond: number): SluiceError {
    const { maxScheduleDays } = this.#context.settings;
    return invalidField(
      '/per_second',
      `is too low: at ${perSecond} a second the next tasks would be due more than ` +
        `${maxScheduleDays} days from now (maxScheduleDays)`,
    );
  }

  #refuseTooFar(schedule: Schedule): void {
    const nowMs = approximateNow(this.#context).getTime();
    const faults = scheduleFaults(schedule, nowMs, this.#context.settings.maxScheduleDays);
    if (faults.length > 0) throw invalidRequest(faults);
  }

  async #replay(
    taskIds: readonly TaskId[],
    request: ReplayRequest,
    dueAt: readonly Date[] | null = null,
  ): Promise<number> {
    if (taskIds.length === 0) return 0;
    const { db } = this.#context;
    const rows = await patiently(() =>
      replayTasks(db, taskIds, request, instant(this.#context), dueAt),
    );
    // The feeder then knows by itself when the next one is.
    this.#feeder.noteDue(0);
    for (const { taskId, window, from, trace } of rows) {
      const { queue, taskType } = window.lane;
      const move = { from, to: 'pending', attempt: 0, trace, reason: 'replayed' } as const;
      tell(this.#context, { taskId, queue, taskType, priority: window.priority, ...move });
    }
    return rows.length;
  }
}

function checkedRate(perSecond: number): number {
  if (Number.isFinite(perSecond) && perSecond > 0) return perSecond;
  const message = 'must be greater than 0';
  throw new SluiceError('invalid_request', `per_second ${message}`, {
    errors: [{ path: 'per_second', message }],
  });
}
