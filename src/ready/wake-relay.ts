import type { JsonValue } from '../domain/json.js';
import { laneKey, laneOf } from '../domain/lane.js';
import type { Bus } from '../runtime/bus.js';
import type { Wake } from './ready-queue.js';

/** Tells those who wait here first, and other servers of what nobody here was woken for. */
export class WakeRelay {
  readonly #bus: Bus;
  readonly #listeners = new Set<(wake: Wake) => number>();
  readonly #unsubscribe: () => void;

  constructor(bus: Bus) {
    this.#bus = bus;
    this.#unsubscribe = bus.subscribe((message) => {
      for (const wake of parseWakes(message)) this.#tellHere(wake);
    });
  }

  onWake(listener: (wake: Wake) => number): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** What one script brought about is one message, however many lanes it is for. */
  tell(wakes: readonly Wake[]): void {
    const others: Wake[] = [];
    for (const wake of wakes) {
      const rest = wake.count - this.#tellHere(wake);
      if (rest > 0) others.push({ lanes: wake.lanes, count: rest });
    }
    if (others.length > 0) this.tellOthers(others);
  }

  tellOthers(wakes: readonly Wake[]): void {
    const told = wakes.map(({ lanes, count }) => [count, ...lanes.map(laneKey)]);
    this.#bus.publish({ kind: 'wakes', wakes: told });
  }

  close(): void {
    this.#listeners.clear();
    this.#unsubscribe();
  }

  #tellHere(wake: Wake): number {
    let woken = 0;
    for (const listener of this.#listeners) woken += listener(wake);
    return woken;
  }
}

/** None: another kind of message, or one that another version of us sends. */
function parseWakes(message: JsonValue): Wake[] {
  if (typeof message !== 'object' || message === null || Array.isArray(message)) return [];
  const { kind, wakes } = message as Readonly<Record<string, JsonValue>>;
  return kind === 'wakes' && Array.isArray(wakes) ? wakes.flatMap(parseWake) : [];
}

function parseWake(told: JsonValue): Wake[] {
  if (!Array.isArray(told)) return [];
  const [count, ...keys] = told as readonly JsonValue[];
  if (typeof count !== 'number' || !keys.every((key) => typeof key === 'string')) return [];
  return [{ lanes: keys.map(laneOf), count }];
}
