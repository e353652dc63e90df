/** What a heap needs to know of its items: where it put them. An item is in one heap at most. */
export interface Placed {
  /** Written by the heap alone; -1 while in none. */
  place: number;
}

/** Most heaps hold no more, and there may be a million heaps. */
const fewItems = 4;

/** Made for just so many: one that grows by `push` is made for 17 more. */
function withOneMore<T>(items: readonly T[], item: T): T[] {
  const { length } = items;
  const grown = new Array<T>(length + 1);
  for (let place = 0; place < length; place += 1) grown[place] = items[place] as T;
  grown[length] = item;
  return grown;
}

/** A binary heap whose items know their place, so that any of them can be moved or removed. */
export class IndexedHeap<T extends Placed> {
  #items: T[] = [];
  readonly #isBefore: (a: T, b: T) => boolean;

  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore;
  }

  get size(): number {
    return this.#items.length;
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  /** Who comes after all others: it has no children, so every second item is looked at. */
  last(): T | undefined {
    let place = this.#items.length >> 1;
    let last = this.#items[place];
    for (place += 1; place < this.#items.length; place += 1) {
      const item = this.#items[place];
      if (item !== undefined && last !== undefined && this.#isBefore(last, item)) last = item;
    }
    return last;
  }

  push(item: T): void {
    const { length } = this.#items;
    if (length < fewItems) this.#items = withOneMore(this.#items, item);
    else this.#items.push(item);
    siftUp(this.#items, item, length, this.#isBefore);
  }

  pop(): T | undefined {
    const first = this.#items[0];
    if (first !== undefined) this.remove(first);
    return first;
  }

  /** To be told when what an item is ordered by has changed. */
  update(item: T): void {
    settle(this.#items, item, item.place, this.#isBefore);
  }

  remove(item: T): void {
    const last = this.#items.pop();
    if (last !== undefined && last !== item) settle(this.#items, last, item.place, this.#isBefore);
    item.place = -1;
  }

  /**
   * How many items satisfy a condition, counted up to a limit. The condition must hold for all
   * that come before one it holds for: then only those, and their children, are looked at.
   */
  countFirst(isAmongThem: (item: T) => boolean, limit: number): number {
    const places = [0];
    let count = 0;
    while (count < limit) {
      const place = places.pop();
      if (place === undefined) break;
      const item = this.#items[place];
      if (item === undefined || !isAmongThem(item)) continue;
      count += 1;
      places.push(2 * place + 1, 2 * place + 2);
    }
    return count;
  }

  /** As `countFirst`, with the first item that does not satisfy the condition. */
  splitFirst(isAmongThem: (item: T) => boolean): Split<T> {
    const places = [0];
    let count = 0;
    let next: T | undefined;
    for (let place = places.pop(); place !== undefined; place = places.pop()) {
      const item = this.#items[place];
      if (item === undefined) continue;
      if (isAmongThem(item)) {
        count += 1;
        places.push(2 * place + 1, 2 * place + 2);
      } else if (next === undefined || this.#isBefore(item, next)) {
        next = item;
      }
    }
    return { count, next };
  }

  /** At most so many items from all over the heap, each with how many it stands for. */
  sample(most: number, visit: (item: T, count: number) => void): void {
    const { length } = this.#items;
    const taken = Math.min(length, most);
    for (let n = 0; n < taken; n += 1) {
      const item = this.#items[Math.floor((n * length) / taken)];
      if (item !== undefined) visit(item, length / taken);
    }
  }
}

export interface Split<T> {
  readonly count: number;
  readonly next: T | undefined;
}

// Functions, not methods: a class with private methods takes 8 bytes more for each of its objects.

function settle<T extends Placed>(
  items: T[],
  item: T,
  place: number,
  isBefore: (a: T, b: T) => boolean,
): void {
  siftUp(items, item, place, isBefore);
  if (item.place === place) siftDown(items, item, place, isBefore);
}

function siftUp<T extends Placed>(
  items: T[],
  item: T,
  from: number,
  isBefore: (a: T, b: T) => boolean,
): void {
  let place = from;
  while (place > 0) {
    const parentPlace = (place - 1) >> 1;
    const parent = items[parentPlace];
    if (parent === undefined || !isBefore(item, parent)) break;
    items[place] = parent;
    parent.place = place;
    place = parentPlace;
  }
  items[place] = item;
  item.place = place;
}

function siftDown<T extends Placed>(
  items: T[],
  item: T,
  from: number,
  isBefore: (a: T, b: T) => boolean,
): void {
  let place = from;
  while (true) {
    let childPlace = 2 * place + 1;
    let child = items[childPlace];
    if (child === undefined) break;
    const right = items[childPlace + 1];
    if (right !== undefined && isBefore(right, child)) {
      child = right;
      childPlace += 1;
    }
    if (!isBefore(child, item)) break;
    items[place] = child;
    child.place = place;
    place = childPlace;
  }
  items[place] = item;
  item.place = place;
}
