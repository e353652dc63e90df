import { closed, settingsUnder, type Circuit } from '../domain/circuit.js';
import { circuitText } from '../domain/circuit-text.js';
import { unconfined } from '../domain/confinement.js';
import type { TaskId } from '../domain/ids.js';
import type { Lane } from '../domain/lane.js';
import { defaultQueueSettings } from '../domain/queue-settings.js';
import { hasEnded, isLeased, type WaitsFor } from '../domain/task-state.js';
import { waitUnder } from '../domain/wait-estimate.js';
import type { Explanation, TaskView, WaitReason } from '../protocol/tasks-api.js';
import type { Workforce } from '../domain/workforce.js';
import { turnGiver } from '../runtime/turns.js';
import { findHeads } from '../store/find-heads.js';
import type { ReadyRow } from '../store/task-row.js';
import { findLinePosition } from '../store/find-line-position.js';
import { findQueue } from '../store/queues.js';
import { findWaitsFor } from '../store/read-tasks.js';
import type { CountedGroup } from '../store/scaling.js';
import type { ActiveWorkers } from './active-workers.js';
import { approximateNow, instant, type EngineContext } from './context.js';
import { startIn, type Estimate } from './estimate.js';
import {
  heldUpReasons,
  inOrder,
  shortReasons,
  uncountedNotes,
  type LimitsNow,
} from './explain-limits.js';
import type { LiveQueues } from './live-queues.js';
import { isPausedAt } from './queue-pause.js';
import type { Read } from './read.js';

const countedPositions = 1_000;
const maxWindowsLookedAt = 1_000;

type QueueNow = LimitsNow & { readonly circuit: Circuit; readonly running: number };

export interface ExplainParts {
  readonly read: Read;
  readonly estimate: Estimate;
  readonly live: LiveQueues;
  readonly active: ActiveWorkers;
}

/** Why a task is not running: everything that is in its way now, the nearest cause first. */
export class Explain {
  readonly #context: EngineContext;
  readonly #read: Read;
  readonly #estimate: Estimate;
  readonly #live: LiveQueues;
  readonly #active: ActiveWorkers;

  constructor(context: EngineContext, { read, estimate, live, active }: ExplainParts) {
    this.#context = context;
    this.#read = read;
    this.#estimate = estimate;
    this.#live = live;
    this.#active = active;
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
    const workforce = await this.#active.get();
    const reasons = [
      ...pendingReason(task, waitsFor),
      ...room,
      ...pauseReason(now),
      ...circuitReason(now),
      ...concurrencyReason(now),
      ...(isInLine ? await this.#limitReasons(task, workforce, now, owner !== null) : []),
      ...workerReason(task, workforce),
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
    workforce: Workforce<CountedGroup>,
    now: LimitsNow,
    hidesOthers: boolean,
  ): Promise<WaitReason[]> {
    if (now.buckets.length === 0) return [];
    const { db } = this.#context;
    const heads = await findHeads(db.reads, task.queue, maxWindowsLookedAt, instant(this.#context));
    const head = await firstTaken(inOrder(heads, now.settings.ageing), workforce);
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

/** What no worker can do is never taken, and holds up nothing. */
async function firstTaken(
  heads: readonly ReadyRow[],
  workforce: Workforce<CountedGroup>,
): Promise<ReadyRow | null> {
  const giveTurn = turnGiver();
  for (const head of heads) {
    if (workforce.isAnyAbleTo(head.lane)) return head;
    await giveTurn();
  }
  return null;
}

function workerReason(task: TaskView, workforce: Workforce<CountedGroup>): WaitReason[] {
  const able = [...workforce.ableTo(laneOf(task))];
  if (able.length === 0) return noWorkerReason(task, workforce.unseen.workers);
  const taking = sumOf(able, (group) => group.taking);
  const workers = sumOf(able, (group) => group.workers);
  if (able.some(({ notFull }) => notFull > 0)) return [];
  if (taking === 0) return [allBenchedReason(able, workers)];
  const benched = workers - taking;
  const besides =
    benched === 0
      ? ''
      : ` ${String(benched)} more get nothing for now: they failed while others succeeded.`;
  const detail = `All ${String(taking)} workers that could do it are full.${besides}`;
  return [{ kind: 'workers_busy', detail }];
}

/** Of workers that were not looked at nobody knows whether they can do it. */
function noWorkerReason(task: TaskView, unseen: number): WaitReason[] {
  const needs = [`task type ${task.taskType}`, ...task.requiredCapabilities].join(', ');
  const but =
    unseen === 0
      ? ''
      : ` ${String(unseen)} were not looked at: together workers name too many task types and queues.`;
  return [{ kind: 'no_worker', detail: `No active worker offers: ${needs}.${but}` }];
}

function allBenchedReason(able: readonly CountedGroup[], workers: number): WaitReason {
  const untilMs = Math.min(...able.map((group) => group.suspendedUntil?.getTime() ?? Infinity));
  const detail =
    `All ${String(workers)} workers that could do it get nothing for now: ` +
    'they failed while others succeeded.';
  return { kind: 'workers_busy', detail, until: new Date(untilMs) };
}

function sumOf<Item>(items: readonly Item[], numberOf: (item: Item) => number): number {
  return items.reduce((sum, item) => sum + numberOf(item), 0);
}

function laneOf({ queue, taskType, requiredCapabilities }: TaskView): Lane {
  return { queue, taskType, capabilities: requiredCapabilities };
}

function until(instant: Date | null): { readonly until?: Date } {
  return instant === null ? {} : { until: instant };
}
