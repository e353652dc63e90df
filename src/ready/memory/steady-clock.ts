import type { Clock } from '../../runtime/clock.js';

/**
 * The ready queue's own time: whole milliseconds from its start on that never go back. When the clock beneath is set
 * back, this one goes on from where it was: standing still until the other caught up would stop
 * ageing, pauses and refills for as long as the clock had been wrong.
 *
 * V8 keeps a whole number below 2^31 in the field that holds it, and any other in 16 bytes of its own:
 * every entry and every lane has one of these instants, and for 24 days none is that large.
 */
export class SteadyClock {
  readonly #source: Clock;
  readonly #beganMs: number;
  #aheadMs = 0;
  #lastMs = 0;

  constructor(source: Clock) {
    this.#source = source;
    this.#beganMs = Math.floor(source.nowMs());
  }

  nowMs(): number {
    // Rounded last: the difference of two large numbers would be kept as a large one.
    const sourceMs = Math.floor(this.#source.nowMs() - this.#beganMs);
    if (sourceMs + this.#aheadMs < this.#lastMs) this.#aheadMs = this.#lastMs - sourceMs;
    this.#lastMs = sourceMs + this.#aheadMs;
    return this.#lastMs;
  }
}
