import { setTimeout as delay } from 'node:timers/promises';

/** The time of the case: it began at 0, and goes faster than that of the machine by `timeScale`. */
export class CaseClock {
  readonly timeScale: number;
  readonly #beganAt: number;

  constructor(timeScale: number, beganAt = Date.now()) {
    this.timeScale = timeScale;
    this.#beganAt = beganAt;
  }

  nowMs(): number {
    return this.caseMs(performance.timeOrigin + performance.now());
  }

  /** Of a moment of the machine's clock. */
  caseMs(at: number): number {
    return (at - this.#beganAt) * this.timeScale;
  }

  /** How long the machine has to wait for it, in whole milliseconds as timers count. */
  realMs(durationMs: number): number {
    return Math.max(1, Math.round(durationMs / this.timeScale));
  }

  async until(caseMs: number): Promise<void> {
    const leftMs = (caseMs - this.nowMs()) / this.timeScale;
    if (leftMs > 0) await delay(Math.ceil(leftMs));
  }
}
