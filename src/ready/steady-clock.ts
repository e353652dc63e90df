import type { Clock } from '../runtime/clock.js';

/**
 * The ready queue's own time: whole milliseconds that never go back. When the clock beneath is set
 * back, this one goes on from where it was: standing still until the other caught up would stop
 * ageing, pauses and refills for as long as the clock had been wrong.
 */
export class SteadyClock {
  readonly #source: Clock;
  #aheadMs = 0;
  #lastMs = Number.NEGATIVE_INFINITY;

  constructor(source: Clock) {
    this.#source = source;
  }

  nowMs(): number {
    const sourceMs = Math.floor(this.#source.nowMs());
    if (sourceMs + this.#aheadMs < this.#lastMs) this.#aheadMs = this.#lastMs - sourceMs;
    this.#lastMs = sourceMs + this.#aheadMs;
    return this.#lastMs;
  }
}
