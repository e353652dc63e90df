import { laneKey } from '../domain/lane.js';
import type { ReadyQueue, Wake } from '../ready/ready-queue.js';

const gatherMs = 5;

/**
 * Passes on to other servers what nobody here waits for. While there is more work than workers every
 * take has something to pass on: it is gathered for a moment, lane by lane.
 */
export class WakeRelay {
  readonly #ready: ReadyQueue;
  readonly #gathered = new Map<string, Wake>();

  constructor(ready: ReadyQueue) {
    this.#ready = ready;
  }

  add(wake: Wake): void {
    const key = wake.lanes.map(laneKey).join('\n\n');
    const before = this.#gathered.get(key)?.count ?? 0;
    if (this.#gathered.size === 0) setTimeout(() => this.#send(), gatherMs).unref();
    this.#gathered.set(key, { lanes: wake.lanes, count: Math.max(before, wake.count) });
  }

  #send(): void {
    const wakes = [...this.#gathered.values()];
    this.#gathered.clear();
    for (const wake of wakes) this.#ready.wakeOthers(wake);
  }
}
