/**
 * What this process was told a moment ago and need not read again: it is asked for once, and never
 * changes in between. Bounded by weight, in two halves: when the younger one is full, the older one is
 * given up.
 */
export class Recent<Key, Value> {
  readonly #half: number;
  #young = new Map<Key, Value>();
  #old = new Map<Key, Value>();
  #youngWeight = 0;

  constructor(maxWeight: number) {
    this.#half = maxWeight / 2;
  }

  add(key: Key, value: Value, weight: number): void {
    if (weight > this.#half) return;
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
    const half = this.#young.has(key) ? this.#young : this.#old;
    const value = half.get(key) ?? null;
    half.delete(key);
    return value;
  }

  clear(): void {
    this.#young.clear();
    this.#old.clear();
    this.#youngWeight = 0;
  }
}
