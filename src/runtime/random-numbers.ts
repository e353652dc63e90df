import { randomFillSync } from 'node:crypto';

/** Fetched together: a call for each takes longer than all that is made of it. */
const fetched = 1_024;

/** As hard to guess as the system's. */
export class RandomNumbers {
  readonly #numbers = new Uint32Array(fetched);
  #next = fetched;

  nextUint32(): number {
    if (this.#next === fetched) {
      randomFillSync(this.#numbers);
      this.#next = 0;
    }
    const number = this.#numbers[this.#next] ?? 0;
    this.#next += 1;
    return number;
  }
}
