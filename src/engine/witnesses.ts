import type { Successes } from '../domain/bench.js';
import type { WorkerId } from '../domain/ids.js';

const maxOfKind = 4;
const defaultMaxKinds = 10_000;

export interface Witness extends Successes {
  readonly workerId: WorkerId;
}

/**
 * Who did a kind of task well when last heard of: a few for each kind, the latest ones, of the kinds
 * that came last. A kind is a row of arrays for all of them: 190 bytes with its name, and 550 with a
 * map and objects of its own.
 */
export class Witnesses {
  readonly #maxKinds: number;
  readonly #rows = new Map<string, number>();
  /** Row by row; null: nobody. */
  readonly #workers: (WorkerId | null)[] = [];
  readonly #sinceMs: Float64Array;
  readonly #lastMs: Float64Array;

  constructor(maxKinds = defaultMaxKinds) {
    this.#maxKinds = maxKinds;
    this.#sinceMs = new Float64Array(maxKinds * maxOfKind);
    this.#lastMs = new Float64Array(maxKinds * maxOfKind);
  }

  add(kind: string, workerId: WorkerId, nowMs: number): void {
    const place = this.#placeFor(this.#rows.get(kind) ?? this.#begin(kind), workerId);
    if (this.#workers[place] !== workerId) {
      this.#workers[place] = workerId;
      this.#sinceMs[place] = nowMs;
    }
    this.#lastMs[place] = nowMs;
  }

  of(kind: string): Witness[] {
    const row = this.#rows.get(kind);
    if (row === undefined) return [];
    return placesOf(row).flatMap((place) => {
      const workerId = this.#workers[place] ?? null;
      if (workerId === null) return [];
      const [sinceMs = 0, lastMs = 0] = [this.#sinceMs[place], this.#lastMs[place]];
      return [{ workerId, sinceMs, lastMs }];
    });
  }

  delete(kind: string, workerId: WorkerId): void {
    const row = this.#rows.get(kind);
    if (row === undefined) return;
    for (const place of placesOf(row)) {
      if (this.#workers[place] === workerId) this.#workers[place] = null;
    }
  }

  /** Of any kind. */
  deleteAll(workerIds: readonly WorkerId[]): void {
    const gone = new Set<WorkerId | null>(workerIds);
    for (const [place, workerId] of this.#workers.entries()) {
      if (gone.has(workerId)) this.#workers[place] = null;
    }
  }

  /** Its own, or that of nobody, or of whoever was heard of longest ago. */
  #placeFor(row: number, workerId: WorkerId): number {
    let best = row * maxOfKind;
    for (let place = best; place < (row + 1) * maxOfKind; place += 1) {
      if (this.#workers[place] === workerId) return place;
      if (this.#heardAt(place) < this.#heardAt(best)) best = place;
    }
    return best;
  }

  #heardAt(place: number): number {
    if (this.#workers[place] === null) return Number.NEGATIVE_INFINITY;
    return this.#lastMs[place] ?? 0;
  }

  #begin(kind: string): number {
    const row = this.#rows.size < this.#maxKinds ? this.#rows.size : this.#dropOldest();
    this.#rows.set(kind, row);
    for (const place of placesOf(row)) this.#workers[place] = null;
    return row;
  }

  #dropOldest(): number {
    for (const [kind, row] of this.#rows) {
      this.#rows.delete(kind);
      return row;
    }
    throw new Error('there is no kind to drop');
  }
}

function placesOf(row: number): number[] {
  return Array.from({ length: maxOfKind }, (_, index) => row * maxOfKind + index);
}
