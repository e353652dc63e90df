import type { Lane } from './lane.js';
import type { Offer } from './offer.js';
import type { OfferIndex } from './offer-index.js';

/** Active workers that can do the same. */
export interface WorkerGroup {
  readonly workers: number;
  /** Slots of all of them. */
  readonly capacity: number;
  /** Slots that hold a task, and slots that are free; a benched worker's are neither. */
  readonly busy: number;
  readonly free: number;
}

export const noWorkers: WorkerGroup = { workers: 0, capacity: 0, busy: 0, free: 0 };

/** All active workers at one moment, by what they can do. */
export class Workforce<Group extends WorkerGroup> {
  readonly #offers: OfferIndex;
  readonly #groups: ReadonlyMap<string, Group>;
  /** Workers whose offers were not looked at: they may be able to do any work, or none. */
  readonly unseen: WorkerGroup;

  /** `groups`: by the keys of their offers. */
  constructor(offers: OfferIndex, groups: ReadonlyMap<string, Group>, unseen: WorkerGroup) {
    this.#offers = offers;
    this.#groups = groups;
    this.unseen = unseen;
  }

  /** Of those that were looked at. */
  ableTo(lane: Lane): Generator<Group, void> {
    return this.#named(this.#offers.ableTo(lane));
  }

  /** Those that were looked at and share in the work of the offer. */
  sharing(offer: Offer): Generator<Group, void> {
    return this.#named(this.#offers.sharing(offer));
  }

  isAnyAbleTo(lane: Lane, isEnough: (group: Group) => boolean = () => true): boolean {
    for (const group of this.ableTo(lane)) if (isEnough(group)) return true;
    return false;
  }

  *#named(keys: Iterable<string>): Generator<Group, void> {
    for (const key of keys) {
      const group = this.#groups.get(key);
      if (group !== undefined) yield group;
    }
  }
}
