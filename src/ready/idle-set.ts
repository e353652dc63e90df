/**
 * What is empty but still worth remembering, up to a limit. Past it the half that has been idle
 * longest is forgotten at once: one at a time would walk over the holes that earlier deletions
 * left at the front of the set.
 */
export class IdleSet<T> {
  readonly #items = new Set<T>();
  readonly #limit: number;
  readonly #forget: (item: T) => void;

  constructor(limit: number, forget: (item: T) => void) {
    this.#limit = limit;
    this.#forget = forget;
  }

  add(item: T): void {
    this.#items.delete(item);
    this.#items.add(item);
    if (this.#items.size > this.#limit) this.#forgetOlderHalf();
  }

  delete(item: T): void {
    this.#items.delete(item);
  }

  clear(): void {
    this.#items.clear();
  }

  #forgetOlderHalf(): void {
    const keep = this.#limit >> 1;
    for (const item of this.#items) {
      if (this.#items.size <= keep) return;
      this.#items.delete(item);
      this.#forget(item);
    }
  }
}
