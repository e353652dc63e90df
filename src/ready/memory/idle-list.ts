/** Written by the list alone; null while in none. An item is in one list at most. */
export interface Listed<T> {
  idleBefore: T | null;
  idleAfter: T | null;
}

/**
 * What is empty but still worth remembering, up to a limit: past it, what has been idle longest is
 * forgotten. Items know their neighbours: a set would hash each one whenever it empties or fills.
 */
export class IdleList<T extends Listed<T>> {
  readonly #limit: number;
  readonly #forget: (item: T) => void;
  #longest: T | null = null;
  #latest: T | null = null;
  #size = 0;

  constructor(limit: number, forget: (item: T) => void) {
    this.#limit = limit;
    this.#forget = forget;
  }

  add(item: T): void {
    this.delete(item);
    this.#append(item);
    if (this.#size <= this.#limit) return;
    const longest = this.#longest;
    if (longest === null) return;
    this.delete(longest);
    this.#forget(longest);
  }

  delete(item: T): void {
    const { idleBefore: before, idleAfter: after } = item;
    if (before === null && this.#longest !== item) return;
    if (before === null) this.#longest = after;
    else before.idleAfter = after;
    if (after === null) this.#latest = before;
    else after.idleBefore = before;
    item.idleBefore = null;
    item.idleAfter = null;
    this.#size -= 1;
  }

  /** What was in it is nobody's any more, and must not be put into another. */
  clear(): void {
    this.#longest = null;
    this.#latest = null;
    this.#size = 0;
  }

  #append(item: T): void {
    item.idleBefore = this.#latest;
    if (this.#latest === null) this.#longest = item;
    else this.#latest.idleAfter = item;
    this.#latest = item;
    this.#size += 1;
  }
}
