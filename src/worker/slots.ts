import { Condition } from './condition.js';

/** How many tasks may run at once, and the waiting for that to change. */
export class Slots {
  readonly size: number;
  readonly #condition = new Condition();
  #used = 0;
  #promised = 0;
  #shut = 0;
  #heldUp = false;
  #idleSince: number | null = performance.now();

  constructor(size: number) {
    if (!Number.isInteger(size) || size < 1) {
      throw new RangeError(`concurrency must be a whole number of at least 1, not ${String(size)}`);
    }
    this.size = size;
  }

  get used(): number {
    return this.#used;
  }

  /** Nothing runs there, and something may. */
  get free(): number {
    return this.size - this.#used - this.#shut;
  }

  /** Free, and no poll under way has asked for a task for it. */
  get open(): number {
    return Math.max(0, this.free - this.#promised);
  }

  /** Since when nothing runs, on the clock of `performance`; null while something does. */
  get idleSince(): number | null {
    return this.#idleSince;
  }

  take(): void {
    if (this.#used === this.size) throw new Error('All slots are taken');
    this.#used += 1;
    this.#idleSince = null;
    this.#condition.changed();
  }

  giveBack(): void {
    if (this.#used === 0) throw new Error('No slot is taken');
    this.#used -= 1;
    if (this.#used === 0) this.#idleSince = performance.now();
    this.#condition.changed();
  }

  /** Nothing runs there any more, but nothing is asked for in its place before this has ended. */
  giveBackAfter(answered: Promise<unknown>): void {
    this.#shut += 1;
    this.giveBack();
    void answered.finally(() => {
      this.#shut -= 1;
      this.#condition.changed();
    });
  }

  /** For the tasks that a poll asks for: whatever it brings, there is a slot for it. */
  promise(count: number): void {
    if (count > this.open) throw new Error('Promised more slots than are open');
    this.#promised += count;
    this.#condition.changed();
  }

  /** The poll was answered: its tasks take their slots now. */
  redeem(count: number): void {
    this.#promised -= count;
    this.#condition.changed();
  }

  /** Nobody asks for tasks although slots are free. */
  set heldUp(isHeldUp: boolean) {
    this.#heldUp = isHeldUp;
    this.#condition.changed();
  }

  whenOpen(signal?: AbortSignal): Promise<void> {
    return this.#condition.until(() => this.open > 0, signal);
  }

  /** No task can be asked for: all slots are taken, or something else is in the way. */
  whenShut(signal?: AbortSignal): Promise<void> {
    return this.#condition.until(() => this.free === 0 || this.#heldUp, signal);
  }

  whenIdle(signal?: AbortSignal): Promise<void> {
    return this.#condition.until(() => this.#used === 0, signal);
  }

  /** Looked at whenever a slot is taken, promised or given back. */
  when(holds: () => boolean, signal?: AbortSignal): Promise<void> {
    return this.#condition.until(holds, signal);
  }
}
