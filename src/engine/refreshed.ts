/** A value that is no older is answered as it is. */
const usualFreshForMs = 250;
/** Up to this age a value is answered while a new one is read, if that takes long. */
const usualUsableForMs = 15_000;
/** A read that takes no longer is worth waiting for. */
const quickMs = 20;
/** A read that took long is not repeated so soon: 5 % of the time, but every few seconds at least. */
const costShare = 20;
const longestFreshMs = 5_000;

/** Read when somebody asks. Whoever asks for a value that takes long to read gets the one before meanwhile. */
export class Refreshed<Value> {
  readonly #read: () => Promise<Value>;
  readonly #freshForMs: number;
  readonly #usableForMs: number;
  #last: { readonly value: Value; readonly readAtMs: number } | null = null;
  #reading: Promise<Value> | null = null;
  #tookMs = 0;

  constructor(
    read: () => Promise<Value>,
    { freshForMs = usualFreshForMs, usableForMs = usualUsableForMs } = {},
  ) {
    this.#read = read;
    this.#freshForMs = freshForMs;
    this.#usableForMs = usableForMs;
  }

  async get(): Promise<Value> {
    const last = this.#last;
    if (last === null) return this.#readOnce();
    const ageMs = performance.now() - last.readAtMs;
    const costMs = Math.min(this.#tookMs * costShare, longestFreshMs);
    if (ageMs < Math.max(this.#freshForMs, costMs)) return last.value;
    const reading = this.#readOnce();
    if (this.#tookMs <= quickMs || ageMs >= this.#usableForMs) return reading;
    // Whoever asks next hears of it.
    reading.catch(() => undefined);
    return last.value;
  }

  /** Read now, or by a read that is under way. */
  refresh(): Promise<Value> {
    return this.#readOnce();
  }

  /** The last one, however old, where a new one can't be read. */
  async getEvenOld(): Promise<Value> {
    try {
      return await this.get();
    } catch (error) {
      if (this.#last === null) throw error;
      return this.#last.value;
    }
  }

  #readOnce(): Promise<Value> {
    this.#reading ??= this.#readNow().finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  async #readNow(): Promise<Value> {
    const beganMs = performance.now();
    const value = await this.#read();
    const readAtMs = performance.now();
    // The first one takes longer than all others, and says nothing about them.
    if (this.#last !== null) this.#tookMs = readAtMs - beganMs;
    this.#last = { value, readAtMs };
    return value;
  }
}
