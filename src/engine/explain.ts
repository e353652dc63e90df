import type { TaskId } from '../domain/ids.js';
import { defaultQueueSettings, type QueueSettings } from '../domain/queue-settings.js';
import { hasEnded, isLeased } from '../domain/task-state.js';
import type { Explanation, TaskView, WaitReason, WorkerView } from '../protocol/api.js';
import { findQueue } from '../store/queues.js';
import { findWaitsFor } from '../store/read-tasks.js';
import { findActiveWorkers } from '../store/workers.js';
import type { EngineContext } from './context.js';
import type { Read } from './read.js';

const countedPositions = 1_000;
const maxWorkersLookedAt = 1_000;

/** Why a task is not running: everything that is in its way now, the nearest cause first. */
export class Explain {
  readonly #context: EngineContext;
  readonly #read: Read;

  constructor(context: EngineContext, read: Read) {
    this.#context = context;
    this.#read = read;
  }

  async explainTask(taskId: TaskId): Promise<Explanation> {
    const task = await this.#read.getTask(taskId, false);
    const { status } = task;
    if (hasEnded(status) || isLeased(status)) return { taskId, status, reasons: [] };
    const queue = await findQueue(this.#context.db, task.queue);
    const settings = queue?.settings ?? defaultQueueSettings;
    const reasons = [
      ...(await this.#backlogReason(task, settings)),
      ...this.#pauseReason(task, settings),
      ...(await this.#concurrencyReason(task, settings)),
      ...(await this.#workerReason(task)),
      ...(await this.#positionReason(task)),
    ];
    return { taskId, status, reasons };
  }

  async #backlogReason(task: TaskView, { maxReady }: QueueSettings): Promise<WaitReason[]> {
    if (task.status !== 'pending') return [];
    const waitsFor = await findWaitsFor(this.#context.db, task.taskId);
    switch (waitsFor) {
      case 'time': {
        const why = task.attempt > 0 ? 'It waits before its next attempt.' : 'It is not due yet.';
        return [{ kind: 'scheduled', detail: why, ...until(task.runAt) }];
      }
      case 'workflow':
        return [
          {
            kind: 'workflow',
            detail: `An earlier task of workflow ${String(task.workflowId)} has not ended well yet.`,
          },
        ];
      case 'room': {
        const detail = `Its part of the ready queue holds ${String(maxReady)} at most; it comes in when one is taken.`;
        return [{ kind: 'no_room', detail }];
      }
      case null:
        return [];
    }
  }

  #pauseReason({ queue }: TaskView, { paused, pausedUntil }: QueueSettings): WaitReason[] {
    const isOver = pausedUntil !== null && pausedUntil.getTime() <= this.#context.db.nowMs();
    if (!paused || isOver) return [];
    return [{ kind: 'paused', detail: `Queue ${queue} is paused.`, ...until(pausedUntil) }];
  }

  async #concurrencyReason(
    { queue }: TaskView,
    { maxConcurrency }: QueueSettings,
  ): Promise<WaitReason[]> {
    if (maxConcurrency === null) return [];
    const { running } = await this.#context.ready.live(queue);
    if (running < maxConcurrency) return [];
    const detail = `Queue ${queue} runs ${String(running)} tasks; ${String(maxConcurrency)} is its most.`;
    return [{ kind: 'max_concurrency', detail }];
  }

  async #workerReason(task: TaskView): Promise<WaitReason[]> {
    const active = await findActiveWorkers(this.#context.db, maxWorkersLookedAt);
    const able = active.filter((worker) => canDo(worker, task));
    if (able.length === 0) {
      const needs = [`task type ${task.taskType}`, ...task.requiredCapabilities].join(', ');
      return [{ kind: 'no_worker', detail: `No active worker offers: ${needs}.` }];
    }
    if (able.some((worker) => worker.currentLoad < worker.capacity)) return [];
    const detail = `All ${String(able.length)} workers that could do it are full.`;
    return [{ kind: 'workers_busy', detail }];
  }

  async #positionReason({ taskId, queue }: TaskView): Promise<WaitReason[]> {
    const position = await this.#context.ready.position(taskId, countedPositions);
    if (position === null || position === 0) return [];
    const count = position === countedPositions ? `${String(position)} or more` : String(position);
    return [{ kind: 'behind', detail: `${count} tasks of queue ${queue} come before it.` }];
  }
}

function canDo(worker: WorkerView, task: TaskView): boolean {
  return (
    (worker.taskTypes === null || worker.taskTypes.includes(task.taskType)) &&
    (worker.queues === null || worker.queues.includes(task.queue)) &&
    task.requiredCapabilities.every((capability) => worker.capabilities.includes(capability))
  );
}

function until(instant: Date | null): { readonly until?: Date } {
  return instant === null ? {} : { until: instant };
}
