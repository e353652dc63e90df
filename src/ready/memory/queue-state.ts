import { defaultAgeing, type PriorityRank } from '../../domain/priority.js';
import {
  defaultQueueSettings,
  runsByDefault,
  type Cost,
  type QueueSettings,
} from '../../domain/queue-settings.js';
import { AgeingTable } from './ageing-table.js';
import type { Bucket } from './bucket.js';
import type { Placed } from '../indexed-heap.js';
import { isTakenBefore, type Ordered } from './queue-order.js';
import type { HeldBackBy } from '../ready-queue.js';
import { sharedKey, type SharedLimit } from './shared-limits.js';

const never = Number.POSITIVE_INFINITY;
const none: readonly never[] = [];

interface QueueLane {
  /** No two lanes of a queue have the same. */
  readonly route: string;
}

interface QueueEntry extends Ordered {
  readonly cost: Cost;
}

/** What a queue is told anew. */
export interface QueueConfiguration {
  readonly version: number;
  readonly settings: QueueSettings;
  /** In the ready queue's time. */
  readonly pausedUntilMs: number;
  readonly probes: Probes | null;
  /** Of the limits that are its own. */
  readonly own: readonly Bucket[];
  readonly shared: readonly SharedLimit[];
  /** What left by then paid other limits than these: see `OutEntry.number`. */
  readonly limitsAfterOut: number;
}

interface Told extends Omit<QueueConfiguration, 'version'> {
  readonly version: number | null;
  readonly ageing: AgeingTable;
  readonly sharedKey: string;
  readonly areDefaults: boolean;
}

/** One for all queues that were never configured: most of them. */
const nothingTold: Told = {
  version: null,
  settings: defaultQueueSettings,
  pausedUntilMs: Number.NEGATIVE_INFINITY,
  probes: null,
  own: none,
  shared: none,
  limitsAfterOut: 0,
  ageing: new AgeingTable(defaultAgeing),
  sharedKey: '',
  areDefaults: true,
};

/** How many more may be taken under the present version. */
export interface Probes {
  left: number;
  /** What left by then was taken under an older version: see `OutEntry.number`. */
  readonly afterOut: number;
}

/** When all parked lanes of a queue are to be looked at again. */
export interface Review<Q> extends Placed {
  readonly queue: Q;
  atMs: number;
}

/** What most queues never have. */
interface Seldom<L, E, P, Q> {
  readonly otherLanes: Map<string, L>;
  readonly parked: Set<P>;
  readonly review: Review<Q>;
  short: E | null;
}

/**
 * What the ready queue knows of one queue: its settings, its lanes, its slots, its limits and its
 * turn. L: its lanes, E: their entries, P: what takes look at and may park.
 */
export class QueueState<L extends QueueLane, E extends QueueEntry, P = L> {
  readonly name: string;
  idleBefore: QueueState<L, E, P> | null = null;
  idleAfter: QueueState<L, E, P> | null = null;
  /** How many of its windows are behind. */
  behind = 0;
  /** Taken or running: what counts against `maxConcurrency`. */
  slotsInUse = 0;
  running = 0;
  /** Grows with every service, across all queues; 0 before the first offer. */
  turn = 0;
  // Entries in its lanes, by rank.
  #high = 0;
  #medium = 0;
  #low = 0;
  #told = nothingTold;
  #lane: L | null = null;
  // Made when first needed: most queues have one lane and no limits, and there may be a million queues.
  #seldom: Seldom<L, E, P, QueueState<L, E, P>> | null = null;

  constructor(name: string) {
    this.name = name;
  }

  /** Null: never configured. */
  get version(): number | null {
    return this.#told.version;
  }

  get settings(): QueueSettings {
    return this.#told.settings;
  }

  get ageing(): AgeingTable {
    return this.#told.ageing;
  }

  get own(): readonly Bucket[] {
    return this.#told.own;
  }

  /** Sorted by name. */
  get shared(): readonly SharedLimit[] {
    return this.#told.shared;
  }

  get limitsAfterOut(): number {
    return this.#told.limitsAfterOut;
  }

  get sharedKey(): string {
    return this.#told.sharedKey;
  }

  /** Entries in its lanes. */
  get waiting(): number {
    return this.#high + this.#medium + this.#low;
  }

  waitingOf(rank: PriorityRank): number {
    if (rank === 0) return this.#high;
    return rank === 1 ? this.#medium : this.#low;
  }

  addWaiting(rank: PriorityRank, added: 1 | -1): void {
    if (rank === 0) this.#high += added;
    else if (rank === 1) this.#medium += added;
    else this.#low += added;
  }

  get laneCount(): number {
    return this.#lane === null ? 0 : 1 + (this.#seldom?.otherLanes.size ?? 0);
  }

  /** Up to so many of them: there may be ten thousand. */
  lanes(limit = Number.POSITIVE_INFINITY): readonly L[] {
    if (this.#lane === null) return none;
    const lanes = [this.#lane];
    for (const lane of this.#seldom?.otherLanes.values() ?? none) {
      if (lanes.length >= limit) break;
      lanes.push(lane);
    }
    return lanes;
  }

  /** Lanes that left the index of their group until this queue opens to them. */
  get parked(): Iterable<P> {
    return this.#seldom?.parked ?? none;
  }

  get review(): Review<QueueState<L, E, P>> {
    return (this.#seldom ??= newSeldom(this)).review;
  }

  /** Waits for tokens of the queue's own, and what comes after it in the queue waits for it. */
  get short(): E | null {
    return this.#seldom === null ? null : this.#seldom.short;
  }

  set short(entry: E | null) {
    if (entry === null && this.#seldom === null) return;
    this.#seldom ??= newSeldom(this);
    this.#seldom.short = entry;
  }

  /** How many more may be taken, as far as slots and probes go. */
  get places(): number {
    const { settings, probes } = this.#told;
    const { maxConcurrency } = settings;
    const freeSlots = maxConcurrency === null ? never : maxConcurrency - this.slotsInUse;
    return probes === null ? freeSlots : Math.min(freeSlots, probes.left);
  }

  get hasLimits(): boolean {
    return this.own.length > 0 || this.shared.length > 0;
  }

  /** Holds nothing, and would be made again just as it is, but for its turn and version. */
  get isIdle(): boolean {
    const holdsNothing = this.slotsInUse === 0 && this.waiting === 0 && this.behind === 0;
    return this.#told.areDefaults && holdsNothing;
  }

  findLane(route: string): L | null {
    return this.#lane?.route === route ? this.#lane : (this.#seldom?.otherLanes.get(route) ?? null);
  }

  addLane(lane: L): void {
    if (this.#lane === null) {
      this.#lane = lane;
      return;
    }
    this.#seldom ??= newSeldom(this);
    this.#seldom.otherLanes.set(lane.route, lane);
  }

  removeLane(lane: L): void {
    if (this.#lane !== lane) {
      this.#seldom?.otherLanes.delete(lane.route);
      return;
    }
    this.#lane = null;
    const [other] = this.#seldom?.otherLanes.values() ?? none;
    if (other === undefined) return;
    this.#seldom?.otherLanes.delete(other.route);
    this.#lane = other;
  }

  park(lane: P): void {
    this.#seldom ??= newSeldom(this);
    this.#seldom.parked.add(lane);
  }

  unpark(lane: P): void {
    this.#seldom?.parked.delete(lane);
  }

  configure(configuration: QueueConfiguration): void {
    const { settings, pausedUntilMs, probes, shared } = configuration;
    this.#told = {
      ...configuration,
      pausedUntilMs: settings.paused ? pausedUntilMs : Number.NEGATIVE_INFINITY,
      ageing: new AgeingTable(settings.ageing),
      sharedKey: sharedKey(shared),
      areDefaults: runsByDefault(settings) && probes === null,
    };
  }

  /**
   * From when on anything may be taken: `nowMs` itself when it may now, infinity when not before
   * something happens (a place is freed, the settings change, a limit becomes known).
   */
  opensAt(nowMs: number): number {
    if (this.places <= 0) return never;
    for (const { bucket } of this.shared) if (bucket === null) return never;
    return Math.max(nowMs, this.#told.pausedUntilMs);
  }

  /** Why nothing may be taken, whatever the tokens. */
  closedBy(nowMs: number): Exclude<HeldBackBy, 'rate_limit'> | null {
    const { pausedUntilMs, probes } = this.#told;
    if (pausedUntilMs > nowMs) return 'pause';
    if (probes !== null && probes.left <= 0) return 'probes';
    return this.places <= 0 ? 'max_concurrency' : null;
  }

  /** From when on this entry may be taken, as far as the queue alone decides. */
  opensAtFor(entry: E, nowMs: number): number {
    const opensAt = this.opensAt(nowMs);
    if (this.own.length === 0 || opensAt === never) return opensAt;
    const obstacle = this.obstacleTo(entry, nowMs);
    const clearsAt = obstacle === null ? nowMs : this.tokensAt(obstacle, nowMs);
    return Math.max(opensAt, clearsAt, this.tokensAt(entry, nowMs));
  }

  /** When the shared limits have what this entry costs. */
  sharedOpensAt({ cost }: E, nowMs: number): number {
    let opensAt = nowMs;
    for (const { bucket } of this.shared) {
      opensAt = Math.max(opensAt, bucket?.opensAt(cost, nowMs) ?? never);
    }
    return opensAt;
  }

  /** True: this entry is the short one now, and was not before. */
  noteIfShort(entry: E, nowMs: number): boolean {
    if (this.own.length === 0 || entry === this.short) return false;
    if (this.tokensAt(entry, nowMs) <= nowMs) return false;
    if (this.obstacleTo(entry, nowMs) !== null) return false;
    this.short = entry;
    return true;
  }

  /** The short entry, if it comes before this one and its tokens are still not there. */
  obstacleTo(entry: E, nowMs: number): E | null {
    const { short } = this;
    if (short === null || short === entry) return null;
    const isInTheWay =
      isTakenBefore(this.ageing, short, entry, nowMs) && this.tokensAt(short, nowMs) > nowMs;
    return isInTheWay ? short : null;
  }

  /** When its own limits have what this entry costs. */
  tokensAt({ cost }: E, nowMs: number): number {
    let opensAt = nowMs;
    for (const bucket of this.own) opensAt = Math.max(opensAt, bucket.opensAt(cost, nowMs));
    return opensAt;
  }

  spend({ cost }: E, takeId: string, nowMs: number): void {
    if (this.#told.probes !== null) this.#told.probes.left -= 1;
    for (const bucket of this.own) bucket.spend(cost, takeId, nowMs);
    for (const { bucket } of this.shared) bucket?.spend(cost, takeId, nowMs);
  }

  refundProbe(outNumber: number): void {
    const { probes } = this.#told;
    if (probes !== null && outNumber > probes.afterOut) probes.left += 1;
  }
}

/** A function, not a method: a class with private methods takes 8 bytes more for each of its objects. */
function newSeldom<L, E, P, Q>(queue: Q): Seldom<L, E, P, Q> {
  return {
    otherLanes: new Map(),
    parked: new Set(),
    review: { place: -1, queue, atMs: 0 },
    short: null,
  };
}
