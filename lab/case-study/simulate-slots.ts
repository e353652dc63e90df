import type { Arrival, Ran } from './work.js';

/**
 * The ideal: whenever one of the slots is free, the next in order begins at once, and nothing else takes
 * any time.
 */
export function simulateSlots(arrivals: readonly Arrival[], slots: number): readonly Ran[] {
  const free = new FreeTimes(slots);
  return arrivals.map(({ task, model, arrivedMs, ms }) => {
    const startedMs = Math.max(arrivedMs, free.takeFirst());
    const endedMs = startedMs + ms;
    free.add(endedMs);
    return { task, model, arrivedMs, startedMs, endedMs, answeredMs: endedMs };
  });
}

/** When each slot is free again, the last one first. */
class FreeTimes {
  readonly #descending: number[];

  constructor(slots: number) {
    this.#descending = Array.from({ length: slots }, () => 0);
  }

  takeFirst(): number {
    return this.#descending.pop() ?? 0;
  }

  add(timeMs: number): void {
    let low = 0;
    let high = this.#descending.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#descending[middle] ?? 0) > timeMs) low = middle + 1;
      else high = middle;
    }
    this.#descending.splice(low, 0, timeMs);
  }
}
