/** The database's clock, carried on between measurements by a clock that never steps. */
export class DatabaseClock {
  #aheadMs = 0;

  localMs(): number {
    return performance.timeOrigin + performance.now();
  }

  /** The answer was made between sending and now: half-way is off by at most half the round trip. */
  measured(databaseMs: number, sentAtMs: number): void {
    this.#aheadMs = databaseMs - (sentAtMs + this.localMs()) / 2;
  }

  /** Whole milliseconds, as ids want them. */
  nowMs(): number {
    return Math.floor(this.localMs() + this.#aheadMs);
  }
}
