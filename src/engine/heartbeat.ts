import type { Lease, TaskId, WorkerId } from '../domain/ids.js';
import type { Heartbeat as Beat, HeartbeatAnswer } from '../protocol/workers-api.js';
import { Batcher } from '../runtime/batcher.js';
import { LockedError } from '../store/database.js';
import { findAttempts } from '../store/find-attempts.js';
import { findHeldBy } from '../store/sweep-attempts.js';
import {
  adoptTasks,
  beatAll,
  buryWorker,
  type Beat as Heard,
  type Beating,
  type HeldTask,
} from '../store/workers.js';
import { instant, judgeDatabaseFailure, type EngineContext } from './context.js';
import { released, type EndAttempts } from './end-attempts.js';
import { unknownWorker, type Fleet, type KnownWorker } from './fleet.js';
import type { Hearing } from './hearing.js';
import type { News } from './news.js';

const maxHeldAtOnce = 10_000;
const maxBeatsAtOnce = 500;
/** What their workers hold is read with the beats. */
const maxTasksAtOnce = 20_000;
/** However large a fleet is, its beats are few statements, and each is answered soon. */
const maxGatherMs = 200;
const gatherShareOfInterval = 1 / 50;
/** A worker that is not answered within the interval takes its beat for lost. */
const lockedShareOfInterval = 1 / 4;

export interface HeartbeatParts {
  readonly fleet: Fleet;
  readonly endAttempts: EndAttempts;
  readonly news: News;
  readonly hearing: Hearing;
}

/** Keeps a worker's leases alive, and finds what only one of the two sides thinks it holds. */
export class Heartbeat {
  readonly #context: EngineContext;
  readonly #fleet: Fleet;
  readonly #endAttempts: EndAttempts;
  readonly #news: News;
  readonly #hearing: Hearing;
  readonly #beats: Batcher<Beating, Heard>;

  constructor(context: EngineContext, { fleet, endAttempts, news, hearing }: HeartbeatParts) {
    this.#context = context;
    this.#fleet = fleet;
    this.#endAttempts = endAttempts;
    this.#news = news;
    this.#hearing = hearing;
    this.#beats = new Batcher({
      flush: (beats) => this.#hear(beats),
      maxItems: maxBeatsAtOnce,
      weigh: ({ heartbeat }) =>
        Math.max(heartbeat.currentLoad, heartbeat.currentTasks?.length ?? 0),
      maxWeight: maxTasksAtOnce,
      gatherMs: () => this.#gatherMs(),
      lockedPatienceMs: context.settings.heartbeatIntervalMs * lockedShareOfInterval,
      judge: judgeDatabaseFailure,
    });
  }

  async heartbeat(workerId: WorkerId, request: Beat): Promise<HeartbeatAnswer> {
    const receivedMs = this.#nowMs();
    const heard = await this.#beat({ workerId, heartbeat: request });
    if (heard === null) return { shouldDrain: false, cancelled: [], lost: [] };
    if (heard.kind === 'unknown') {
      this.#fleet.forget(workerId);
      throw unknownWorker(workerId);
    }
    const worker = await this.#fleet.get(workerId);
    worker.load = request.currentLoad;
    worker.draining = heard.drainRequested || request.status === 'draining';
    const cancelled = new Set(worker.cancelled);
    worker.cancelled.clear();
    const lost =
      request.currentTasks === undefined
        ? []
        : await this.#reconcile(worker, heard.held, leasesOf(request), receivedMs);
    return {
      shouldDrain: heard.drainRequested,
      cancelled: [...cancelled],
      lost: lost.filter((taskId) => !cancelled.has(taskId)),
    };
  }

  /**
   * Null: somebody holds a lock, and it could not be written. No server counts the silence of a worker during a
   * lock, so one that is known to live goes on with what it runs.
   */
  async #beat(beating: Beating): Promise<Heard | null> {
    try {
      return await this.#beats.add(beating);
    } catch (error) {
      this.#hearing.missed(beating.workerId, error);
      if (error instanceof LockedError && this.#fleet.find(beating.workerId) !== null) return null;
      throw error;
    }
  }

  async #hear(beats: readonly Beating[]): Promise<Heard[]> {
    const { serverId } = this.#hearing;
    const heard = await beatAll(this.#context.db, beats, instant(this.#context), serverId);
    await this.#fleet.meet(
      beats.filter((_, index) => heard[index]?.kind === 'known').map(({ workerId }) => workerId),
    );
    return heard;
  }

  /** A millisecond for every worker: a few wait for nobody. */
  #gatherMs(): number {
    const { heartbeatIntervalMs } = this.#context.settings;
    return Math.min(
      this.#fleet.size,
      Math.floor(heartbeatIntervalMs * gatherShareOfInterval),
      maxGatherMs,
    );
  }

  /**
   * Gives back what it still holds, before it is buried: the sweeper would count what it finds with
   * the dead as lost, at the cost of a retry. And after it, should a poll have come in between.
   */
  async deregister(workerId: WorkerId): Promise<void> {
    await this.#fleet.get(workerId);
    await this.#giveBack(workerId);
    await buryWorker(this.#context.db, workerId);
    // A poll of it may still wait at another server, and would be given what nobody runs.
    this.#news.tell({ kind: 'buried', workerId });
    await this.#giveBack(workerId);
  }

  async #giveBack(workerId: WorkerId): Promise<void> {
    const { db } = this.#context;
    for (;;) {
      const attempts = await findHeldBy(db, workerId, maxHeldAtOnce);
      await this.#endAttempts.end(
        attempts.map((attempt) => released(attempt, attempt.timeoutSeconds)),
      );
      if (attempts.length < maxHeldAtOnce) return;
    }
  }

  async #reconcile(
    worker: KnownWorker,
    held: readonly HeldTask[],
    inHand: ReadonlyMap<TaskId, Lease | null>,
    receivedMs: number,
  ): Promise<readonly TaskId[]> {
    await this.#takeBackUnheld(worker, held, inHand, receivedMs);
    const ours = new Set(held.map(({ taskId }) => taskId));
    const unknown = [...inHand.keys()].filter((taskId) => !ours.has(taskId));
    // Leases of its former id, from before it registered again, stay good under this one.
    const leased = unknown.flatMap((taskId) => {
      const lease = inHand.get(taskId) ?? null;
      return lease === null ? [] : [{ taskId, lease }];
    });
    if (leased.length === 0) return unknown;
    const adopted = new Set(await adoptTasks(this.#context.db.vital, worker.workerId, leased));
    return unknown.filter((taskId) => !adopted.has(taskId));
  }

  /**
   * The response of a poll was lost: when the beat came, the task had been claimed for more than an
   * interval, and the worker has not named it in two beats that lie apart. It goes back at no cost.
   * Beats that Postgres kept waiting say what was so when they came, not when they were answered.
   */
  async #takeBackUnheld(
    worker: KnownWorker,
    held: readonly HeldTask[],
    inHand: ReadonlyMap<TaskId, Lease | null>,
    receivedMs: number,
  ): Promise<void> {
    const { heartbeatIntervalMs } = this.#context.settings;
    const waitedMs = this.#nowMs() - receivedMs;
    const missing = held.filter(
      ({ taskId, heldMs }) => heldMs - waitedMs > heartbeatIntervalMs && !inHand.has(taskId),
    );
    const before = worker.missing;
    const sinceMs = ({ taskId }: HeldTask) => before.get(taskId) ?? receivedMs;
    worker.missing = new Map(missing.map((task) => [task.taskId, sinceMs(task)]));
    const again = missing.filter((task) => receivedMs - sinceMs(task) >= heartbeatIntervalMs / 2);
    if (again.length === 0) return;
    const attempts = await findAttempts(this.#context.db, again);
    await this.#endAttempts.end(
      attempts.map((attempt) => released(attempt, attempt.timeoutSeconds)),
    );
  }

  #nowMs(): number {
    const { clock } = this.#context;
    return clock === null ? performance.now() : clock.nowMs();
  }
}

function leasesOf({ currentTasks = [], leases }: Beat): ReadonlyMap<TaskId, Lease | null> {
  return new Map(currentTasks.map((taskId, index) => [taskId, leases?.[index] ?? null]));
}
