/** Where the time comes from. Whoever needs it is handed one, so that tests can turn it by hand. */
export interface Clock {
  nowMs(): number;
}

export const systemClock: Clock = { nowMs: () => Date.now() };

export class ManualClock implements Clock {
  #nowMs: number;

  constructor(startMs = Date.UTC(2030, 0, 1)) {
    this.#nowMs = startMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  /** A negative step is a clock that was set back. */
  advance(ms: number): void {
    this.#nowMs += ms;
  }
}
