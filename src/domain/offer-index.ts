import type { Lane } from './lane.js';
import type { Offer } from './offer.js';

interface Entry {
  readonly key: string;
  readonly queues: ReadonlySet<string> | null;
  readonly capabilities: ReadonlySet<string> | null;
}

/** To add so many names takes a fraction of a millisecond. */
const namesInOneStep = 500;

/** Offers by task type: a lane is compared only with those that name its type. */
export class OfferIndex {
  readonly #entries: Entry[] = [];
  /** Without a list where one alone names a type: there may be hundreds of thousands of such names. */
  readonly #byType = new Map<string, Entry | Entry[]>();
  readonly #ofAnyType: Entry[] = [];

  /** In small steps: it may name a thousand task types. */
  *add(key: string, { taskTypes, queues, capabilities }: Offer): Generator<void, void> {
    const entry: Entry = {
      key,
      queues: queues === null ? null : new Set(queues),
      capabilities: capabilities === null ? null : new Set(capabilities),
    };
    this.#entries.push(entry);
    if (taskTypes === null) this.#ofAnyType.push(entry);
    let added = 0;
    for (const taskType of new Set(taskTypes)) {
      const others = this.#byType.get(taskType);
      if (others === undefined) this.#byType.set(taskType, entry);
      else if (Array.isArray(others)) others.push(entry);
      else this.#byType.set(taskType, [others, entry]);
      added += 1;
      if (added % namesInOneStep === 0) yield;
    }
    yield;
  }

  /** The keys of those who can do all of the lane. */
  *ableTo({ queue, taskType, capabilities }: Lane): Generator<string, void> {
    for (const entries of [this.#ofType(taskType), this.#ofAnyType]) {
      for (const { key, queues, capabilities: owned } of entries) {
        if (queues !== null && !queues.has(queue)) continue;
        if (owned !== null && !capabilities.every((each) => owned.has(each))) continue;
        yield key;
      }
    }
  }

  /** The keys of those who share in the work of the offer, and have its capabilities. */
  *sharing({ taskTypes, queues, capabilities }: Offer): Generator<string, void> {
    for (const entry of this.#naming(taskTypes)) {
      const { key, queues: named, capabilities: owned } = entry;
      if (queues !== null && named !== null && !queues.some((each) => named.has(each))) continue;
      if (owned !== null && !(capabilities ?? []).every((each) => owned.has(each))) continue;
      yield key;
    }
  }

  #ofType(taskType: string): readonly Entry[] {
    const entries = this.#byType.get(taskType) ?? [];
    return Array.isArray(entries) ? entries : [entries];
  }

  #naming(taskTypes: readonly string[] | null): Iterable<Entry> {
    if (taskTypes === null) return this.#entries;
    const naming = new Set(this.#ofAnyType);
    for (const taskType of taskTypes) {
      for (const entry of this.#ofType(taskType)) naming.add(entry);
    }
    return naming;
  }
}
