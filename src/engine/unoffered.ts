import { isBefore } from '../ready/left-line.js';
import type { Place } from '../ready/ready-queue.js';
import { WindowMap } from './windows.js';

/**
 * What is in line and could not be offered: of each window the oldest, however many they are. From
 * there on the line is read again.
 */
export class Unoffered {
  readonly #oldest = new WindowMap<Place>();

  add(places: readonly Place[]): void {
    for (const place of places) {
      const known = this.#oldest.get(place);
      if (known === undefined || isBefore(place, known)) this.#oldest.set(place, place);
    }
  }

  takeAll(): Place[] {
    const places = Array.from(this.#oldest.entries(), ([, place]) => place);
    this.#oldest.clear();
    return places;
  }

  clear(): void {
    this.#oldest.clear();
  }
}
