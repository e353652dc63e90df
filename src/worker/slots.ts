import { Condition } from './condition.js';

/** How many tasks may run at once, and the waiting for that to change. */
export class Slots {
  readonly size: number;
  readonly #condition = new Condition();
  #used = 0;

  constructor(size: number) {
    if (!Number.isInteger(size) || size < 1) {
      throw new RangeError(`concurrency must be a whole number of at least 1, not ${String(size)}`);
    }
    this.size = size;
  }

  get used(): number {
    return this.#used;
  }

  get free(): number {
    return this.size - this.#used;
  }

  take(): void {
    if (this.#used === this.size) throw new Error('All slots are taken');
    this.#used += 1;
    this.#condition.changed();
  }

  giveBack(): void {
    if (this.#used === 0) throw new Error('No slot is taken');
    this.#used -= 1;
    this.#condition.changed();
  }

  whenFree(signal?: AbortSignal): Promise<void> {
    return this.#condition.until(() => this.#used < this.size, signal);
  }

  whenFull(signal?: AbortSignal): Promise<void> {
    return this.#condition.until(() => this.#used === this.size, signal);
  }

  whenIdle(signal?: AbortSignal): Promise<void> {
    return this.#condition.until(() => this.#used === 0, signal);
  }
}
