/** In less time the numbers of the system are too coarse. */
const leastSpanMs = 100;

/** How many cores this process used since the reading before: 1 is one core. */
export class CpuUsage {
  readonly #usedMs: () => number;
  readonly #nowMs: () => number;
  #lastUsedMs: number;
  #lastMs: number;
  #last = 0;

  constructor(usedMs = processUsedMs, nowMs = () => performance.now()) {
    this.#usedMs = usedMs;
    this.#nowMs = nowMs;
    this.#lastUsedMs = usedMs();
    this.#lastMs = nowMs();
  }

  read(): number {
    const nowMs = this.#nowMs();
    const spanMs = nowMs - this.#lastMs;
    if (spanMs < leastSpanMs) return this.#last;
    const usedMs = this.#usedMs();
    this.#last = (usedMs - this.#lastUsedMs) / spanMs;
    this.#lastUsedMs = usedMs;
    this.#lastMs = nowMs;
    return this.#last;
  }
}

function processUsedMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
