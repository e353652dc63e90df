/** One timer for many changes of mind: it is started anew only when it would ring too late. */
export class Alarm {
  readonly #ring: () => void;
  #atMs = Number.POSITIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #timerEndsMs = Number.POSITIVE_INFINITY;

  constructor(ring: () => void) {
    this.#ring = ring;
  }

  /** By `performance.now()`. Rings once, never before. */
  set(atMs: number): void {
    this.#atMs = atMs;
    if (atMs < this.#timerEndsMs) this.#start();
  }

  /** Not later than this; it stays as it is when it is set to ring sooner. */
  advance(atMs: number): void {
    if (atMs < this.#atMs) this.set(atMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#atMs = Number.POSITIVE_INFINITY;
    this.#timerEndsMs = Number.POSITIVE_INFINITY;
  }

  #start(): void {
    clearTimeout(this.#timer);
    this.#timerEndsMs = this.#atMs;
    this.#timer = setTimeout(
      () => {
        this.#end();
      },
      Math.ceil(this.#atMs - performance.now()),
    );
  }

  /** A timer may end a millisecond too soon, or for an instant that was put off since. */
  #end(): void {
    this.#timerEndsMs = Number.POSITIVE_INFINITY;
    if (performance.now() < this.#atMs) {
      this.#start();
      return;
    }
    this.#atMs = Number.POSITIVE_INFINITY;
    this.#ring();
  }
}
