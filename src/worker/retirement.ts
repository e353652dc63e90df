import type { Slots } from './slots.js';

export interface RetirementOptions {
  readonly maxIdleMs?: number;
  readonly maxLifetimeMs?: number;
  readonly slots: Slots;
  /** The server is away, or has not acknowledged all results: nobody can say that it is not needed. */
  readonly mustStay: () => boolean;
  readonly retire: (why: string) => void;
}

// Node takes a longer delay for 1 ms.
const maxTimerMs = 2 ** 31 - 1;

/** Ends a worker that nobody needs any more, or that is old enough to be replaced. */
export class Retirement {
  readonly #options: RetirementOptions;
  readonly #maxIdleMs: number;
  readonly #maxLifetimeMs: number;
  #startedAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(options: RetirementOptions) {
    this.#options = options;
    this.#maxIdleMs = duration('maxIdleMs', options.maxIdleMs);
    this.#maxLifetimeMs = duration('maxLifetimeMs', options.maxLifetimeMs);
  }

  start(): void {
    this.#startedAt = performance.now();
    if (!this.#stopped) this.#look();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  /** While something runs, it can't have been idle for long enough before `maxIdleMs` from now. */
  #look(): void {
    const now = performance.now();
    const { slots, mustStay } = this.#options;
    const idleSince = mustStay() ? now : Math.max(slots.idleSince ?? now, this.#startedAt);
    const idleLeftMs = idleSince + this.#maxIdleMs - now;
    const lifeLeftMs = this.#startedAt + this.#maxLifetimeMs - now;
    if (lifeLeftMs <= 0) this.#options.retire('its lifetime is over');
    else if (idleLeftMs <= 0) this.#options.retire('nothing to do for too long');
    else this.#lookIn(Math.min(idleLeftMs, lifeLeftMs));
  }

  #lookIn(ms: number): void {
    if (ms === Infinity) return;
    this.#timer = setTimeout(() => this.#look(), Math.min(Math.ceil(ms), maxTimerMs));
  }
}

function duration(name: string, ms = Infinity): number {
  if (ms > 0) return ms;
  throw new RangeError(`${name} must be more than 0, not ${String(ms)}`);
}
