/** Which of the tasks 0 to count - 1 have begun: each of them, and how many of them more than once. */
export class Tally {
  #seen;
  #left;
  #resolve = () => undefined;
  firstMs = 0;
  twice = 0;
  /** Resolves when every one has begun. */
  all = new Promise((resolve) => {
    this.#resolve = resolve;
  });

  constructor(count) {
    this.#seen = new Uint8Array(count);
    this.#left = count;
  }

  see(index, atMs) {
    if (this.firstMs === 0) this.firstMs = atMs;
    if (this.#seen[index] !== 0) {
      this.twice += 1;
      return;
    }
    this.#seen[index] = 1;
    this.#left -= 1;
    if (this.#left === 0) this.#resolve();
  }
}
