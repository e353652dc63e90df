import type { TaskId } from '../domain/ids.js';
import { laneKey } from '../domain/lane.js';
import { rankOf } from '../domain/priority.js';
import { bounds } from '../protocol/bounds.js';
import type { Cost } from '../domain/queue-settings.js';
import type { Newcomer, Window } from '../ready/ready-queue.js';
import type { ClaimedRow } from '../store/claim-tasks.js';
import type { NewClaim } from '../store/new-task.js';
import type { EngineContext } from './context.js';
import { newLease } from './new-lease.js';
import type { PollWaiters } from './poll-waiters.js';
import type { Wish } from './wish.js';

/** A task that is about to be written. */
export interface Arriving {
  readonly taskId: TaskId;
  readonly window: Window;
  readonly cost: Cost;
  readonly parametersJson: string;
}

/** Somebody took a task before it was written: it is written as theirs. */
export interface EarlyClaim extends NewClaim {
  readonly taskId: TaskId;
  readonly wish: Wish;
  /** Null: it was written as one that waits, or not at all. */
  readonly settle: (row: ClaimedRow | null) => void;
}

export type EarlyClaims = ReadonlyMap<TaskId, EarlyClaim>;
export const noClaims: EarlyClaims = new Map();

/**
 * A task that comes while a worker waits for one is written once, as claimed, instead of written and
 * then claimed. It goes through the ready queue like any other, so that order, limits and pauses
 * hold: it is announced before it is written, those who wait look, and what nobody took is taken back.
 */
export class Arrivals {
  readonly #context: EngineContext;
  readonly #waiters: PollWaiters;
  /** What is announced, with whoever took it. */
  readonly #announced = new Map<TaskId, EarlyClaim | null>();
  #untaken = 0;
  #allTaken: () => void = () => undefined;

  constructor(context: EngineContext, waiters: PollWaiters) {
    this.#context = context;
    this.#waiters = waiters;
  }

  has(taskId: TaskId): boolean {
    return this.#announced.has(taskId);
  }

  join(wish: Wish): Promise<ClaimedRow | null> {
    const { entry, workerId, generation, start } = wish;
    const { taskId } = entry;
    const { unstartedMs } = this.#context.settings;
    const lease = newLease(entry.grant);
    this.#untaken -= 1;
    if (this.#untaken === 0) this.#allTaken();
    return new Promise((settle) => {
      const claim = { taskId, workerId, lease, generation, start, unstartedMs, wish, settle };
      this.#announced.set(taskId, claim);
    });
  }

  async announce(tasks: readonly Arriving[]): Promise<EarlyClaims> {
    const wanted = this.#wanted(tasks);
    if (wanted.length === 0) return noClaims;
    const { ready } = this.#context;
    for (const { taskId } of wanted) this.#announced.set(taskId, null);
    this.#untaken = wanted.length;
    const accepted = await ready.announce(wanted);
    this.#untaken -= wanted.length - accepted.length;
    if (this.#untaken > 0) await this.#untilLooked();
    const claims = wanted.flatMap(({ taskId }) => this.#announced.get(taskId) ?? []);
    for (const { taskId } of wanted) this.#announced.delete(taskId);
    if (claims.length < accepted.length) await ready.remove(accepted);
    // All of one generation: a queue that was filled anew holds nothing that was announced before.
    return new Map(claims.map((claim) => [claim.taskId, claim]));
  }

  /** At the next turn of the event loop whoever was woken has looked. */
  #untilLooked(): Promise<void> {
    return new Promise((resolve) => {
      this.#allTaken = resolve;
      setImmediate(resolve);
    });
  }

  /** They were not written as claimed. */
  async refuse(claims: readonly EarlyClaim[]): Promise<void> {
    if (claims.length === 0) return;
    await this.#context.ready.refund(claims.map(({ wish }) => wish.entry));
    for (const { settle } of claims) settle(null);
  }

  /**
   * In the order of taking, up to the first that nobody waits for, so that priority order holds; and no more than
   * fit into one answer.
   */
  #wanted(tasks: readonly Arriving[]): Newcomer[] {
    if (!this.#waiters.areAny || this.#context.answers.isClogged) return [];
    const left = new Map<string, number>();
    const wanted: Newcomer[] = [];
    let bytes = 0;
    for (const { taskId, window, cost, parametersJson } of tasks.toSorted(byPriority)) {
      const key = laneKey(window.lane);
      const count = left.get(key) ?? this.#waiters.wanted(window.lane);
      if (count === 0 || bytes >= bounds.answerBytes) break;
      bytes += parametersJson.length;
      left.set(key, count - 1);
      wanted.push({ lane: window.lane, priority: window.priority, taskId, cost });
    }
    return wanted;
  }
}

function byPriority({ window: a }: Arriving, { window: b }: Arriving): number {
  return rankOf(a.priority) - rankOf(b.priority);
}
