import type { WorkerId } from '../domain/ids.js';
import { OfferIndex } from '../domain/offer-index.js';
import type { Offer } from '../domain/offer.js';
import { noWorkers, Workforce, type WorkerGroup } from '../domain/workforce.js';
import { inTurns } from '../runtime/turns.js';
import { countGroups, type CountedGroup } from '../store/scaling.js';
import { findOffers } from '../store/workers.js';
import { instant, type EngineContext } from './context.js';
import { Refreshed } from './refreshed.js';

/** Rows are counted in a few milliseconds. */
const workersAtOnce = 1_000;
/** Groups whose workers are counted apart. Further ones are counted together, as workers that are not looked at. */
const maxCounted = 20_000;
/** Groups whose offers are kept and compared with what waits: those with the most workers. */
const maxGroups = 1_000;
/** What the names of all of them take. A worker that names all it may takes 150 kB. */
const maxWeight = 8 * 1024 * 1024;
/** Names that are read with one statement: parsed in a few milliseconds. */
const weightAtOnce = 256 * 1024;
/** With fewer workers, and names that take less, one statement of a few milliseconds is asked whenever somebody asks. */
const few = { workers: 1_000, weight: 1024 * 1024 };
/** With more it is read once a second, and whoever asks waits for it when the last is older than two. */
const freshness = { freshForMs: 1_000, usableForMs: 2_000 };

interface Counted {
  readonly groups: Map<string, CountedGroup>;
  unseen: WorkerGroup;
}

/**
 * Who works, by what they can do: read once for all who ask. What workers name is read once for all that can do the same,
 * and kept for as long as one of them is there. However many there are and whatever they name, it is done in small steps
 * and keeps 8 MiB of names.
 */
export class ActiveWorkers {
  readonly #context: EngineContext;
  readonly #latest: Refreshed<Workforce<CountedGroup>>;
  #offers: ReadonlyMap<string, Offer> = new Map();
  #index = new OfferIndex();
  #areFew = true;

  constructor(context: EngineContext) {
    this.#context = context;
    this.#latest = new Refreshed(() => this.#read(), freshness);
  }

  get(): Promise<Workforce<CountedGroup>> {
    return this.#areFew ? this.#latest.refresh() : this.#latest.get();
  }

  async #read(): Promise<Workforce<CountedGroup>> {
    const counted = await this.#count();
    const chosen = mostWorkersFirst(counted.groups.values());
    await this.#learn(chosen);
    this.#areFew = chosen.length === counted.groups.size && areFew(chosen);
    let { unseen } = counted;
    const seen = new Map<string, CountedGroup>();
    for (const [key, group] of counted.groups) {
      if (this.#offers.has(key)) seen.set(key, group);
      else unseen = together(unseen, group);
    }
    return new Workforce(this.#index, seen, unseen);
  }

  async #count(): Promise<Counted> {
    const { db } = this.#context;
    const counted: Counted = { groups: new Map(), unseen: noWorkers };
    let after: WorkerId | null = null;
    do {
      const portion = { after, limit: workersAtOnce };
      const { groups, next } = await countGroups(db, portion, instant(this.#context));
      for (const group of groups) note(counted, group);
      after = next;
    } while (after !== null);
    return counted;
  }

  /** The offers of these groups, and no others. */
  async #learn(groups: readonly CountedGroup[]): Promise<void> {
    const unknown = groups.filter(({ offerKey }) => !this.#offers.has(offerKey));
    if (unknown.length === 0 && groups.length === this.#offers.size) return;
    const offers = new Map<string, Offer>();
    for (const { offerKey } of groups) {
      const offer = this.#offers.get(offerKey);
      if (offer !== undefined) offers.set(offerKey, offer);
    }
    for (const portion of portionsOf(unknown)) await this.#readOffers(portion, offers);
    this.#index = await indexOf(offers);
    this.#offers = offers;
  }

  /** A worker whose row has gone meanwhile is looked at next time. */
  async #readOffers(groups: readonly CountedGroup[], into: Map<string, Offer>): Promise<void> {
    const examples = groups.map(({ example }) => example);
    const found = await findOffers(this.#context.db, examples);
    for (const { offerKey, example } of groups) {
      const offer = found.get(example);
      if (offer !== undefined) into.set(offerKey, offer);
    }
  }
}

function areFew(groups: readonly CountedGroup[]): boolean {
  const workers = groups.reduce((sum, group) => sum + group.workers, 0);
  const weight = groups.reduce((sum, { offerWeight }) => sum + offerWeight, 0);
  return workers < few.workers && weight < few.weight;
}

function note(counted: Counted, group: CountedGroup): void {
  const { groups } = counted;
  const known = groups.get(group.offerKey);
  if (known !== undefined) groups.set(group.offerKey, joined(known, group));
  else if (groups.size < maxCounted) groups.set(group.offerKey, group);
  else counted.unseen = together(counted.unseen, group);
}

function joined(one: CountedGroup, other: CountedGroup): CountedGroup {
  const { suspendedUntil: until } = one;
  const isEarlier = until === null || (other.suspendedUntil ?? until) < until;
  return {
    ...one,
    ...together(one, other),
    taking: one.taking + other.taking,
    notFull: one.notFull + other.notFull,
    suspendedUntil: isEarlier ? other.suspendedUntil : until,
    names: [...one.names, ...other.names],
    idle: [...one.idle, ...other.idle],
  };
}

function together(one: WorkerGroup, other: WorkerGroup): WorkerGroup {
  return {
    workers: one.workers + other.workers,
    capacity: one.capacity + other.capacity,
    busy: one.busy + other.busy,
    free: one.free + other.free,
  };
}

/** As many as may be looked at. The same ones next time, while nobody comes or goes. */
function mostWorkersFirst(groups: Iterable<CountedGroup>): CountedGroup[] {
  const sorted = [...groups].sort(
    (a, b) =>
      b.workers - a.workers || b.capacity - a.capacity || (a.offerKey < b.offerKey ? -1 : 1),
  );
  let weight = 0;
  const chosen: CountedGroup[] = [];
  for (const group of sorted) {
    if (chosen.length === maxGroups) break;
    if (weight + group.offerWeight > maxWeight) continue;
    weight += group.offerWeight;
    chosen.push(group);
  }
  return chosen;
}

function* portionsOf(groups: readonly CountedGroup[]): Generator<readonly CountedGroup[], void> {
  let portion: CountedGroup[] = [];
  let weight = 0;
  for (const group of groups) {
    if (portion.length > 0 && weight + group.offerWeight > weightAtOnce) {
      yield portion;
      portion = [];
      weight = 0;
    }
    portion.push(group);
    weight += group.offerWeight;
  }
  if (portion.length > 0) yield portion;
}

async function indexOf(offers: ReadonlyMap<string, Offer>): Promise<OfferIndex> {
  const index = new OfferIndex();
  await inTurns(addAll(index, offers));
  return index;
}

function* addAll(index: OfferIndex, offers: ReadonlyMap<string, Offer>): Generator<void, void> {
  for (const [key, offer] of offers) yield* index.add(key, offer);
}
