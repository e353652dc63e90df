import { closed, settingsUnder, type Circuit } from '../domain/circuit.js';
import { circuitText } from '../domain/circuit-text.js';
import { unconfined } from '../domain/confinement.js';
import type { TaskId } from '../domain/ids.js';
import type { Lane } from '../domain/lane.js';
import { canDo } from '../domain/offer.js';
import { defaultQueueSettings } from '../domain/queue-settings.js';
import { hasEnded, isLeased, type WaitsFor } from '../domain/task-state.js';
import { waitUnder } from '../domain/wait-estimate.js';
import type { Explanation, TaskView, WaitReason } from '../protocol/tasks-api.js';
import type { WorkerView } from '../protocol/workers-api.js';
import { findHeads } from '../store/find-heads.js';
import { findLinePosition } from '../store/find-line-position.js';
import { findQueue } from '../store/queues.js';
import { findWaitsFor } from '../store/read-tasks.js';
import { findActiveWorkers } from '../store/workers.js';
import { approximateNow, instant, type EngineContext } from './context.js';
import { startIn, type Estimate } from './estimate.js';
import {
  firstOf,
  heldUpReasons,
  shortReasons,
  uncountedNotes,
  type LimitsNow,
} from './explain-limits.js';
import type { LiveQueues } from './live-queues.js';
import { isPausedAt } from './queue-pause.js';
import type { Read } from './read.js';

const countedPositions = 1_000;
const maxWorkersLookedAt = 1_000;
const maxWindowsLookedAt = 1_000;

type QueueNow = LimitsNow & { readonly circuit: Circuit; readonly running: number };

/** Why a task is not running: everything that is in its way now, the nearest cause first. */
export class Explain {
  readonly #context: EngineContext;
  readonly #read: Read;
  readonly #estimate: Estimate;
  readonly #live: LiveQueues;

  constructor(context: EngineContext, read: Read, estimate: Estimate, live: LiveQueues) {
    this.#context = context;
    this.#read = read;
    this.#estimate = estimate;
    this.#live = live;
  }

  async explainTask(taskId: TaskId, { owner } = unconfined): Promise<Explanation> {
    const task = await this.#read.getTask(taskId, false);
    const { status } = task;
    if (hasEnded(status) || isLeased(status)) {
      return {
        taskId,
        status,
        reasons: [],
        queuePosition: null,
        estimatedWaitSeconds: null,
        estimatedStartTime: null,
      };
    }
    const { queue, cost } = task;
    const room = status === 'queued' ? await this.#roomReason(task) : [];
    const queuePosition =
      room.length === 0
        ? await this.#context.ready.position(taskId, countedPositions)
        : await findLinePosition(this.#context.db.reads, taskId, countedPositions);
    const now = await this.#limitsNow(queue);
    const waitsFor =
      status === 'pending' ? await findWaitsFor(this.#context.db.reads, taskId) : null;
    const isInLine = status === 'queued';
    const workers = await findActiveWorkers(this.#context.db.reads, maxWorkersLookedAt);
    const reasons = [
      ...pendingReason(task, waitsFor),
      ...room,
      ...pauseReason(now),
      ...circuitReason(now),
      ...concurrencyReason(now),
      ...(isInLine ? await this.#limitReasons(task, workers, now, owner !== null) : []),
      ...workerReason(task, workers, now.nowMs),
      ...positionReason(queue, queuePosition),
    ];
    const notes = uncountedNotes(cost ?? {}, now);
    const obstacles = reasons.map((reason) => ({
      kind: reason.kind,
      untilMs: reason.until?.getTime() ?? null,
    }));
    const estimateMs = await this.#estimate.waitMs(queue, queuePosition, cost ?? {});
    return {
      taskId,
      status,
      reasons,
      queuePosition,
      ...startIn(waitUnder(estimateMs, obstacles, now.nowMs), now.nowMs),
      ...(notes.length === 0 ? {} : { notes }),
    };
  }

  async #limitsNow(queue: string): Promise<QueueNow> {
    const configured = await findQueue(this.#context.db.reads, queue);
    const circuit = configured?.circuit ?? closed;
    const settings = settingsUnder(circuit, configured?.settings ?? defaultQueueSettings);
    const { buckets, running } = await this.#live.now(queue);
    const nowMs = approximateNow(this.#context).getTime();
    return { queue, settings, circuit, buckets, running, nowMs };
  }

  async #limitReasons(
    task: TaskView,
    workers: readonly WorkerView[],
    now: LimitsNow,
    hidesOthers: boolean,
  ): Promise<WaitReason[]> {
    if (now.buckets.length === 0) return [];
    const { db } = this.#context;
    const heads = await findHeads(db.reads, task.queue, maxWindowsLookedAt, instant(this.#context));
    // What nobody can do is never looked at, and holds up nothing.
    const taken = heads.filter(({ lane }) => workers.some((worker) => canDo(worker, lane)));
    const head = firstOf(taken, now.settings.ageing);
    return [
      ...shortReasons({ cost: task.cost ?? {} }, now),
      ...heldUpReasons(task, head, now, hidesOthers),
    ];
  }

  /** In line behind all that the ready queue holds of its window. */
  async #roomReason(task: TaskView): Promise<WaitReason[]> {
    const { ready } = this.#context;
    const [look] = await ready.look([{ lane: laneOf(task), priority: task.priority }]);
    if (!look?.left || (await ready.missing([task.taskId])).length === 0) return [];
    const detail =
      'It is in line behind all that is ready of its kind, and comes in when those are taken.';
    return [{ kind: 'no_room', detail }];
  }
}

function positionReason(queue: string, position: number | null): WaitReason[] {
  if (position === null || position === 0) return [];
  const count = position === countedPositions ? `${String(position)} or more` : String(position);
  return [{ kind: 'behind', detail: `${count} tasks of queue ${queue} come before it.` }];
}

function pendingReason(task: TaskView, waitsFor: WaitsFor | null): WaitReason[] {
  switch (waitsFor) {
    case 'time': {
      const why = task.attempt > 0 ? 'It waits before its next attempt.' : 'It is not due yet.';
      return [{ kind: 'scheduled', detail: why, ...until(task.runAt) }];
    }
    case 'workflow': {
      const detail = `An earlier task of workflow ${String(task.workflowId)} has not ended well yet.`;
      return [{ kind: 'workflow', detail }];
    }
    case null:
      return [];
  }
}

function pauseReason({ queue, settings, nowMs }: LimitsNow): WaitReason[] {
  if (!isPausedAt(settings, nowMs)) return [];
  return [{ kind: 'paused', detail: `Queue ${queue} is paused.`, ...until(settings.pausedUntil) }];
}

/** A 429 is a pause that the service asked for. */
function circuitReason({ queue, circuit, nowMs }: QueueNow): WaitReason[] {
  if (circuit.kind !== 'open') return [];
  const isPause = circuit.reason === 'rate_limited';
  const what = isPause ? `Queue ${queue} is paused` : `The circuit of queue ${queue} is open`;
  const detail = `${what}: ${circuitText(circuit, nowMs)}.`;
  const ends = circuit.untilMs > nowMs ? new Date(circuit.untilMs) : null;
  return [{ kind: isPause ? 'paused' : 'circuit_open', detail, ...until(ends) }];
}

function concurrencyReason({ queue, running, settings, circuit }: QueueNow): WaitReason[] {
  const { maxConcurrency } = settings;
  if (maxConcurrency === null || running < maxConcurrency) return [];
  const gently = circuit.kind === 'recovering' ? ' while its service recovers' : '';
  const detail = `Queue ${queue} runs ${String(running)} tasks; ${String(maxConcurrency)} is its most${gently}.`;
  return [{ kind: 'max_concurrency', detail }];
}

function workerReason(task: TaskView, workers: readonly WorkerView[], nowMs: number): WaitReason[] {
  const able = workers.filter((worker) => canDo(worker, laneOf(task)));
  if (able.length === 0) {
    const needs = [`task type ${task.taskType}`, ...task.requiredCapabilities].join(', ');
    return [{ kind: 'no_worker', detail: `No active worker offers: ${needs}.` }];
  }
  const taking = able.filter(({ benchedUntil }) => (benchedUntil?.getTime() ?? 0) <= nowMs);
  if (taking.some((worker) => worker.currentLoad < worker.capacity)) return [];
  if (taking.length === 0) return [allBenchedReason(able)];
  const benched = able.length - taking.length;
  const besides =
    benched === 0
      ? ''
      : ` ${String(benched)} more get nothing for now: they failed while others succeeded.`;
  const detail = `All ${String(taking.length)} workers that could do it are full.${besides}`;
  return [{ kind: 'workers_busy', detail }];
}

function allBenchedReason(able: readonly WorkerView[]): WaitReason {
  const untilMs = Math.min(...able.map(({ benchedUntil }) => benchedUntil?.getTime() ?? 0));
  const detail =
    `All ${String(able.length)} workers that could do it get nothing for now: ` +
    'they failed while others succeeded.';
  return { kind: 'workers_busy', detail, until: new Date(untilMs) };
}

function laneOf({ queue, taskType, requiredCapabilities }: TaskView): Lane {
  return { queue, taskType, capabilities: requiredCapabilities };
}

function until(instant: Date | null): { readonly until?: Date } {
  return instant === null ? {} : { until: instant };
}
