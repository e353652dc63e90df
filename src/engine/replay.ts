import { SluiceError } from '../domain/errors.js';
import type { TaskId } from '../domain/ids.js';
import type { Priority } from '../domain/priority.js';
import type { DeadLetterFilter, ReplayRequest } from '../protocol/api.js';
import { changeTask } from '../store/change-task.js';
import { findDeadLetters } from '../store/dead-letters.js';
import { findStates } from '../store/read-tasks.js';
import { replayTasks } from '../store/replay-tasks.js';
import { instant, patiently, tell, type EngineContext } from './context.js';
import type { Feeder } from './feeder.js';
import { taskNotFound } from './read.js';

const maxReplayedAtOnce = 1_000;

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
    throw new SluiceError('task_not_ended', `Task ${taskId} is ${state}; it has not ended yet.`);
  }

  async replayDeadLetters(
    filter: DeadLetterFilter,
    request: ReplayRequest,
  ): Promise<{ readonly replayed: number }> {
    let replayed = 0;
    for (;;) {
      const taskIds = await findDeadLetters(this.#context.db, filter, maxReplayedAtOnce);
      const done = await this.#replay(taskIds, request);
      replayed += done;
      if (done === 0 || taskIds.length < maxReplayedAtOnce) return { replayed };
    }
  }

  async changeTask(
    taskId: TaskId,
    change: { readonly priority?: Priority; readonly runAt?: Date },
  ): Promise<void> {
    const { db, ready } = this.#context;
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
        if (answer.wasQueued) await ready.remove([taskId]);
        this.#feeder.noteBacklog(answer.window);
        if (change.runAt !== undefined) {
          this.#feeder.noteDue(Math.max(0, change.runAt.getTime() - db.nowMs()));
        }
    }
  }

  async #replay(taskIds: readonly TaskId[], request: ReplayRequest): Promise<number> {
    if (taskIds.length === 0) return 0;
    const { db } = this.#context;
    const rows = await patiently(() => replayTasks(db, taskIds, request, instant(this.#context)));
    for (const { taskId, window, from } of rows) {
      this.#feeder.noteBacklog(window);
      const { queue, taskType } = window.lane;
      const move = { from, to: 'pending', attempt: 0, reason: 'replayed' } as const;
      tell(this.#context, { taskId, queue, taskType, priority: window.priority, ...move });
    }
    return rows.length;
  }
}
