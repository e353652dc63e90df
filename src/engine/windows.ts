import { laneKey, type Lane } from '../domain/lane.js';
import { rankOf, type Priority } from '../domain/priority.js';
import type { Window } from '../ready/ready-queue.js';

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
