/**
 * What this process was told a moment ago and need not read again: it is asked for once, and never
 * changes in between. Bounded by weight, in two halves: when the younger one is full, the older one is
 * given up.
 */
export class Recent<Key, Value> {
  readonly #half: number;
  readonly #weigh: (value: Value) => number;
  #young = new Map<Key, Value>();
  #old = new Map<Key, Value>();
  #youngWeight = 0;

  constructor(maxWeight: number, weigh: (value: Value) => number) {
    this.#half = maxWeight / 2;
    this.#weigh = weigh;
  }

  /** What can be added before anything is given up. */
  get room(): number {
    return this.#half - this.#youngWeight;
  }

  /** What can be added at once, if what is kept now may be given up. */
  get mostAtOnce(): number {
    return this.#half;
  }

  add(key: Key, value: Value): void {
    const weight = this.#weigh(value);
    if (weight > this.#half) return;
    const before = this.#young.get(key);
    if (before !== undefined) this.#youngWeight -= this.#weigh(before);
    if (this.#youngWeight + weight > this.#half) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#youngWeight = 0;
    }
    this.#young.set(key, value);
    this.#youngWeight += weight;
  }

  /** Null: it is to be read. */
  take(key: Key): Value | null {
    const young = this.#young.get(key);
    if (young !== undefined) {
      this.#young.delete(key);
      this.#youngWeight -= this.#weigh(young);
      return young;
    }
    const old = this.#old.get(key) ?? null;
    this.#old.delete(key);
    return old;
  }
}
