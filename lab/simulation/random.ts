/** One stream of numbers for one seed (mulberry32). Streams of other seeds have nothing to do with it. */
export class Random {
  #state: number;

  constructor(...seeds: readonly number[]) {
    this.#state = seeds.reduce((mixed, seed) => mix(mixed ^ Math.imul(seed + 1, 0x9e3779b1)), 1);
  }

  /** In [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    return (mix(this.#state) >>> 0) / 2 ** 32;
  }

  /** From `least` to `most`, both included. */
  whole(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  pick<Item>(items: readonly [Item, ...Item[]]): Item {
    return items[this.whole(0, items.length - 1)] ?? items[0];
  }

  find<Item>(items: readonly Item[]): Item | null {
    return items[this.whole(0, items.length - 1)] ?? null;
  }
}

function mix(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 15), value | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return mixed ^ (mixed >>> 14);
}
