import { Random } from './random.js';

/**
 * Ids of one instant are ordered by their random bits, and some work is done in the order of ids: for
 * the same history they have to be the same.
 */
export class VirtualChance {
  #random = new Random(0);

  static install(): VirtualChance {
    const chance = new VirtualChance();
    const fill = <Given extends Uint8Array | Uint32Array>(given: Given): Given => {
      const bytes = new Uint8Array(given.buffer, given.byteOffset, given.byteLength);
      for (let at = 0; at < bytes.length; at++) bytes[at] = chance.#random.whole(0, 255);
      return given;
    };
    Object.defineProperty(globalThis.crypto, 'getRandomValues', { value: fill });
    return chance;
  }

  reset(seed: number): void {
    this.#random = new Random(seed, 2_000_000);
  }
}
