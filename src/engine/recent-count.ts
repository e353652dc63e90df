/** Counts what happened in the last `bucketMs * buckets`, to the nearest bucket, in fixed memory. */
export class RecentCount {
  readonly #bucketMs: number;
  readonly #counts: Float64Array;
  #latest = 0;

  constructor(bucketMs: number, buckets: number) {
    this.#bucketMs = bucketMs;
    this.#counts = new Float64Array(buckets);
  }

  add(nowMs: number, amount = 1): void {
    this.#forget(nowMs);
    const index = this.#latest % this.#counts.length;
    this.#counts[index] = (this.#counts[index] ?? 0) + amount;
  }

  total(nowMs: number): number {
    this.#forget(nowMs);
    return this.#counts.reduce((sum, count) => sum + count, 0);
  }

  /** Empties the buckets that time has moved past. */
  #forget(nowMs: number): void {
    const current = Math.max(this.#latest, Math.floor(nowMs / this.#bucketMs));
    const stale = Math.min(current - this.#latest, this.#counts.length);
    for (let step = 0; step < stale; step++) {
      this.#counts[(current - step) % this.#counts.length] = 0;
    }
    this.#latest = current;
  }
}

export function lastMinute(): RecentCount {
  return new RecentCount(1000, 60);
}

export function lastHour(): RecentCount {
  return new RecentCount(60_000, 60);
}
