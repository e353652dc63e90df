import type { TaskId, WorkerId } from '../domain/ids.js';
import type { Heartbeat as Beat, HeartbeatAnswer } from '../protocol/api.js';
import { findAttempts } from '../store/find-attempts.js';
import { findHeldBy } from '../store/sweep-attempts.js';
import { adoptTasks, beat, buryWorker } from '../store/workers.js';
import { instant, type EngineContext } from './context.js';
import { released, type EndAttempts } from './end-attempts.js';
import { unknownWorker, type Fleet, type KnownWorker } from './fleet.js';

const maxHeldAtOnce = 10_000;

interface HeldRow {
  readonly taskId: TaskId;
  readonly lease: Parameters<typeof findAttempts>[1][number]['lease'];
  readonly heldMs: number;
}

/** Keeps a worker's leases alive, and finds what only one of the two sides thinks it holds. */
export class Heartbeat {
  readonly #context: EngineContext;
  readonly #fleet: Fleet;
  readonly #endAttempts: EndAttempts;

  constructor(context: EngineContext, fleet: Fleet, endAttempts: EndAttempts) {
    this.#context = context;
    this.#fleet = fleet;
    this.#endAttempts = endAttempts;
  }

  async heartbeat(workerId: WorkerId, request: Beat): Promise<HeartbeatAnswer> {
    const answer = await beat(this.#context.db, workerId, request, instant(this.#context));
    if (answer.kind === 'unknown') {
      this.#fleet.forget(workerId);
      throw unknownWorker(workerId);
    }
    const worker = await this.#fleet.get(workerId);
    worker.load = request.currentLoad;
    worker.draining = answer.drainRequested || request.status === 'draining';
    const cancelled = [...worker.cancelled];
    worker.cancelled.clear();
    const lost =
      request.currentTasks === undefined
        ? []
        : await this.#reconcile(worker, answer.held, request.currentTasks);
    return {
      shouldDrain: answer.drainRequested,
      cancelled,
      lost: lost.filter((taskId) => !cancelled.includes(taskId)),
    };
  }

  /**
   * Gives back what it still holds, before it is buried: the sweeper would count what it finds with
   * the dead as lost, at the cost of a retry. And after it, should a poll have come in between.
   */
  async deregister(workerId: WorkerId): Promise<void> {
    await this.#fleet.get(workerId);
    await this.#giveBack(workerId);
    await buryWorker(this.#context.db, workerId);
    this.#fleet.forget(workerId);
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
    held: readonly HeldRow[],
    current: readonly TaskId[],
  ): Promise<readonly TaskId[]> {
    const inHand = new Set(current);
    await this.#takeBackUnheld(worker, held, inHand);
    const ours = new Set(held.map(({ taskId }) => taskId));
    const unknown = current.filter((taskId) => !ours.has(taskId));
    if (unknown.length === 0) return [];
    // Leases of its former id, from before it registered again, stay good under this one.
    const adopted = new Set(await adoptTasks(this.#context.db, worker.workerId, unknown));
    return unknown.filter((taskId) => !adopted.has(taskId));
  }

  /**
   * The response of a poll was lost: it was claimed more than an interval ago, and the worker has
   * not named it in two heartbeats in a row. It goes back at no cost.
   */
  async #takeBackUnheld(
    worker: KnownWorker,
    held: readonly HeldRow[],
    inHand: ReadonlySet<TaskId>,
  ): Promise<void> {
    const { heartbeatIntervalMs } = this.#context.settings;
    const missing = held.filter(
      ({ taskId, heldMs }) => heldMs > heartbeatIntervalMs && !inHand.has(taskId),
    );
    const again = missing.filter(({ taskId }) => worker.missing.has(taskId));
    worker.missing = new Set(missing.map(({ taskId }) => taskId));
    if (again.length === 0) return;
    const attempts = await findAttempts(this.#context.db, again);
    await this.#endAttempts.end(
      attempts.map((attempt) => released(attempt, attempt.timeoutSeconds)),
    );
  }
}
