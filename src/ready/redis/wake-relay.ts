import type { JsonValue } from '../../domain/json.js';
import type { Lane } from '../../domain/lane.js';
import type { Bus } from '../../runtime/bus.js';
import type { Wake } from '../ready-queue.js';

/** Tells those who wait here first, and other servers of what nobody here was woken for. */
export class WakeRelay {
  readonly #bus: Bus;
  readonly #listeners = new Set<(wake: Wake) => number>();
  readonly #unsubscribe: () => void;

  constructor(bus: Bus) {
    this.#bus = bus;
    this.#unsubscribe = bus.subscribe((message) => {
      const wake = parseWake(message);
      if (wake !== null) this.#tellHere(wake);
    });
  }

  onWake(listener: (wake: Wake) => number): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  tell(wake: Wake): void {
    const rest = wake.count - this.#tellHere(wake);
    if (rest > 0) this.tellOthers({ ...wake, count: rest });
  }

  tellOthers(wake: Wake): void {
    const lanes = wake.lanes.map(({ queue, taskType, capabilities }) => ({
      queue,
      taskType,
      capabilities: [...capabilities],
    }));
    this.#bus.publish({ kind: 'wake', lanes, count: wake.count });
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

/** Null: another kind of message, or one that another version of us sends. */
function parseWake(message: JsonValue): Wake | null {
  if (typeof message !== 'object' || message === null || Array.isArray(message)) return null;
  const { kind, lanes, count } = message as Readonly<Record<string, JsonValue>>;
  if (kind !== 'wake' || !Array.isArray(lanes) || typeof count !== 'number') return null;
  return lanes.every(isLane) ? { lanes: lanes as unknown as readonly Lane[], count } : null;
}

function isLane(value: JsonValue): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const { queue, taskType, capabilities } = value as Readonly<Record<string, JsonValue>>;
  return (
    typeof queue === 'string' &&
    typeof taskType === 'string' &&
    Array.isArray(capabilities) &&
    capabilities.every((name) => typeof name === 'string')
  );
}
