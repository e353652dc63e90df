import type { WorkerId } from '../domain/ids.js';
import type { Lane } from '../domain/lane.js';
import type { Placed } from '../ready/indexed-heap.js';
import type { TakeRequest } from '../ready/ready-queue.js';

/** A reason to look. Who gets it looks, or passes it on. */
export interface WakeUp {
  /** Where something may be taken; none: it is time for the group to look. */
  readonly lanes: readonly Lane[];
  passOn(): void;
}

export interface WaitingPoll {
  readonly workerId: WorkerId;
  readonly request: TakeRequest;
  /** Share of the worker's slots in use. */
  readonly load: number;
  /** When the poll began, by `performance.now()`. */
  readonly sinceMs: number;
  /** What it looks for this time. */
  readonly wakeUp: WakeUp | null;
}

export class PollWaiter implements Placed {
  place = -1;
  /** How many wake-ups its group had when it entered. */
  wakesSeen = 0;
  readonly workerId: WorkerId;
  readonly load: number;
  readonly sinceMs: number;
  /** Entries it asks for. */
  readonly count: number;
  readonly #ended: Promise<void>;
  #end: () => void = () => undefined;
  #reason: WakeUp | null;
  #wakeUp: WakeUp | null = null;

  constructor({ workerId, request, load, sinceMs, wakeUp }: WaitingPoll) {
    this.workerId = workerId;
    this.load = load;
    this.sinceMs = sinceMs;
    this.count = request.count;
    this.#reason = wakeUp;
    this.#ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  /** It came for a reason, and nobody has looked yet. */
  get hasReason(): boolean {
    return this.#reason !== null;
  }

  /** Null: there is news for it, but nothing to take. */
  end(wakeUp: WakeUp | null): void {
    this.#wakeUp ??= wakeUp;
    this.#end();
  }

  /** What ended its wait, once. */
  takeWakeUp(): WakeUp | null {
    const wakeUp = this.#wakeUp;
    this.#wakeUp = null;
    return wakeUp;
  }

  /** What it came to look for, once. */
  takeReason(): WakeUp | null {
    const reason = this.#reason;
    this.#reason = null;
    return reason;
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
}
