import type { WorkerId } from '../domain/ids.js';
import type { Lane } from '../domain/lane.js';
import type { TakeRequest, Wake } from '../ready/ready-queue.js';

export interface WaitingPoll {
  readonly workerId: WorkerId;
  readonly request: TakeRequest;
  /** Share of the worker's slots in use: the least loaded is served first. */
  readonly load: number;
}

/**
 * Polls that look for work. Each is here from before it looks until it has its answer, so that no
 * wake-up falls between a look that found nothing and the wait. An offer wakes as many as it has
 * entries for, not all.
 */
export class PollWaiters {
  readonly #waiters = new Set<PollWaiter>();

  enter(poll: WaitingPoll): PollWaiter {
    const waiter = new PollWaiter(poll);
    this.#waiters.add(waiter);
    return waiter;
  }

  /** A wake-up that it got and did not use goes to somebody who can. */
  leave(waiter: PollWaiter): void {
    this.#waiters.delete(waiter);
    const unused = waiter.takeWake();
    if (unused !== null) this.wake(unused);
  }

  wake(wake: Wake): void {
    if (this.#waiters.size === 0) return;
    const able = [...this.#waiters].filter((waiter) => waiter.canTakeAny(wake.lanes));
    able.sort((a, b) => a.load - b.load);
    let places = 0;
    for (const waiter of able) {
      if (places >= wake.count) return;
      places += waiter.count;
      this.#waiters.delete(waiter);
      waiter.end({ lanes: wake.lanes, count: waiter.count });
    }
  }

  wakeWorker(workerId: WorkerId): void {
    for (const waiter of this.#waiters) if (waiter.workerId === workerId) waiter.end(null);
  }

  wakeAll(): void {
    for (const waiter of this.#waiters) waiter.end(null);
  }
}

export class PollWaiter {
  readonly workerId: WorkerId;
  readonly load: number;
  /** Entries it asks for. */
  readonly count: number;
  readonly #request: TakeRequest;
  readonly #capabilities: ReadonlySet<string>;
  readonly #ended: Promise<void>;
  #end: () => void = () => undefined;
  #wokenBy: Wake | null = null;

  constructor({ workerId, request, load }: WaitingPoll) {
    this.workerId = workerId;
    this.load = load;
    this.count = request.count;
    this.#request = request;
    this.#capabilities = new Set(request.capabilities);
    this.#ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  /** Null: there is news for it, but nothing to take. */
  end(wake: Wake | null): void {
    this.#wokenBy = wake;
    this.#end();
  }

  /** Its share of the wake-up that ended its wait, once: who takes it uses it or passes it on. */
  takeWake(): Wake | null {
    const wake = this.#wokenBy;
    this.#wokenBy = null;
    return wake;
  }

  /** Until it is woken, which it may have been already, the time is over, or the signal fires. */
  async wait(waitMs: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return;
    const timer = setTimeout(this.#end, waitMs);
    signal?.addEventListener('abort', this.#end, { once: true });
    await this.#ended;
    clearTimeout(timer);
    signal?.removeEventListener('abort', this.#end);
  }

  canTakeAny(lanes: readonly Lane[]): boolean {
    return this.count > 0 && lanes.some((lane) => this.#canTake(lane));
  }

  #canTake(lane: Lane): boolean {
    const { taskTypes, queues } = this.#request;
    return (
      (taskTypes === null || taskTypes.includes(lane.taskType)) &&
      (queues === null || queues.includes(lane.queue)) &&
      lane.capabilities.every((capability) => this.#capabilities.has(capability))
    );
  }
}
