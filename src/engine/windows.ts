import { laneKey, type Lane } from '../domain/lane.js';
import { rankOf, type Priority } from '../domain/priority.js';
import type { ReadyQueue, Window } from '../ready/ready-queue.js';

function windowKey(lane: Lane, priority: Priority): string {
  return `${String(rankOf(priority))}\n${laneKey(lane)}`;
}

/** A map by lane and priority. */
export class WindowMap<Value> {
  readonly #entries = new Map<string, readonly [Window, Value]>();

  get size(): number {
    return this.#entries.size;
  }

  get({ lane, priority }: Window): Value | undefined {
    return this.#entries.get(windowKey(lane, priority))?.[1];
  }

  has({ lane, priority }: Window): boolean {
    return this.#entries.has(windowKey(lane, priority));
  }

  set(window: Window, value: Value): void {
    const { lane, priority } = window;
    this.#entries.set(windowKey(lane, priority), [{ lane, priority }, value]);
  }

  delete({ lane, priority }: Window): void {
    this.#entries.delete(windowKey(lane, priority));
  }

  clear(): void {
    this.#entries.clear();
  }

  windows(): Window[] {
    return [...this.#entries.values()].map(([window]) => window);
  }

  entries(): IterableIterator<readonly [Window, Value]> {
    return this.#entries.values();
  }
}

/**
 * Places in the ready queue that are spoken for but not yet filled: between the write in Postgres
 * and the offer, a window looks emptier than it is, and two writers would overfill it.
 */
export class Places {
  readonly #ready: ReadyQueue;
  readonly #spokenFor = new WindowMap<number>();

  constructor(ready: ReadyQueue) {
    this.#ready = ready;
  }

  /** How many of the wanted places are free, window by window; they are held until `giveBack`. */
  async reserve(wanted: WindowMap<number>): Promise<WindowMap<number>> {
    const windows = wanted.windows();
    const room = await this.#ready.room(windows);
    const reserved = new WindowMap<number>();
    windows.forEach((window, index) => {
      const spokenFor = this.#spokenFor.get(window) ?? 0;
      const free = Math.max(0, (room[index] ?? 0) - spokenFor);
      const count = Math.min(free, wanted.get(window) ?? 0);
      reserved.set(window, count);
      if (count > 0) this.#spokenFor.set(window, spokenFor + count);
    });
    return reserved;
  }

  giveBack(reserved: WindowMap<number>): void {
    for (const [window, count] of reserved.entries()) {
      const left = (this.#spokenFor.get(window) ?? 0) - count;
      if (left > 0) this.#spokenFor.set(window, left);
      else this.#spokenFor.delete(window);
    }
  }
}
