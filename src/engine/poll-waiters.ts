import type { WorkerId } from '../domain/ids.js';
import type { Lane } from '../domain/lane.js';
import type { TakeRequest, Wake } from '../ready/ready-queue.js';

interface Waiter {
  readonly workerId: WorkerId;
  readonly request: TakeRequest;
  readonly capabilities: ReadonlySet<string>;
  /** Share of the worker's slots in use: the least loaded is served first. */
  readonly load: number;
  readonly end: (woken: boolean) => void;
}

export interface WaitingPoll {
  readonly workerId: WorkerId;
  readonly request: TakeRequest;
  readonly load: number;
}

/**
 * Polls that found nothing. An offer wakes as many as it has entries for, not all.
 */
export class PollWaiters {
  readonly #waiters = new Set<Waiter>();

  get size(): number {
    return this.#waiters.size;
  }

  /** Answers whether it was woken; else the time is over or the signal fired. */
  wait(poll: WaitingPoll, waitMs: number, signal?: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const waiter: Waiter = {
        ...poll,
        capabilities: new Set(poll.request.capabilities),
        end: (woken) => {
          clearTimeout(timer);
          signal?.removeEventListener('abort', giveUp);
          this.#waiters.delete(waiter);
          resolve(woken);
        },
      };
      const giveUp = () => {
        waiter.end(false);
      };
      const timer = setTimeout(giveUp, waitMs);
      if (signal?.aborted === true) {
        giveUp();
        return;
      }
      signal?.addEventListener('abort', giveUp, { once: true });
      this.#waiters.add(waiter);
    });
  }

  wake({ lanes, count }: Wake): void {
    if (this.#waiters.size === 0) return;
    const able = [...this.#waiters].filter((waiter) => lanes.some((lane) => canTake(waiter, lane)));
    able.sort((a, b) => a.load - b.load);
    let places = 0;
    for (const waiter of able) {
      if (places >= count) return;
      places += waiter.request.count;
      waiter.end(true);
    }
  }

  wakeWorker(workerId: WorkerId): void {
    for (const waiter of this.#waiters) if (waiter.workerId === workerId) waiter.end(true);
  }

  wakeAll(): void {
    for (const waiter of this.#waiters) waiter.end(true);
  }
}

function canTake({ request, capabilities }: Waiter, lane: Lane): boolean {
  return (
    request.count > 0 &&
    (request.taskTypes === null || request.taskTypes.includes(lane.taskType)) &&
    (request.queues === null || request.queues.includes(lane.queue)) &&
    lane.capabilities.every((capability) => capabilities.has(capability))
  );
}
