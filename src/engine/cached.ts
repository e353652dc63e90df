/** Counting costs by how many there are; a slow count is kept for longer: at most 5 % of the time. */
const usualCostShare = 20;

/** Read at most so often, and shared by all who ask meanwhile. */
export class Cached<Value> {
  readonly #freshForMs: number;
  readonly #read: () => Promise<Value>;
  readonly #costShare: number;
  #value: Promise<Value> | null = null;
  #freshUntilMs = 0;

  /** `costShare` 0: it is kept for `freshForMs`, however long it took to read. */
  constructor(freshForMs: number, read: () => Promise<Value>, { costShare = usualCostShare } = {}) {
    this.#freshForMs = freshForMs;
    this.#read = read;
    this.#costShare = costShare;
  }

  get(): Promise<Value> {
    if (this.#value !== null && performance.now() < this.#freshUntilMs) return this.#value;
    this.#freshUntilMs = Infinity;
    this.#value = this.#refresh();
    return this.#value;
  }

  async #refresh(): Promise<Value> {
    const beganMs = performance.now();
    try {
      const value = await this.#read();
      const tookMs = performance.now() - beganMs;
      this.#freshUntilMs = performance.now() + Math.max(this.#freshForMs, tookMs * this.#costShare);
      return value;
    } catch (error) {
      this.#freshUntilMs = 0;
      throw error;
    }
  }
}
