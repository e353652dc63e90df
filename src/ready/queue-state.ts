import { defaultAgeing } from '../domain/priority.js';
import {
  defaultQueueSettings,
  runsByDefault,
  type Cost,
  type QueueSettings,
} from '../domain/queue-settings.js';
import { AgeingTable } from './ageing-table.js';
import type { Bucket } from './bucket.js';
import type { Placed } from './indexed-heap.js';
import { isTakenBefore, type Ordered } from './queue-order.js';
import { sharedKey, type SharedLimit } from './shared-limits.js';

const defaultAgeingTable = new AgeingTable(defaultAgeing);
const never = Number.POSITIVE_INFINITY;
const none: readonly never[] = [];

interface QueueEntry extends Ordered {
  readonly cost: Cost;
  readonly outNumber: number;
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
}

/** How many more may be taken under the present version. */
export interface Probes {
  left: number;
  /** What left by then was taken under an older version: see `ReadyEntry.outNumber`. */
  readonly afterOut: number;
}

/** When all parked lanes of a queue are to be looked at again. */
export interface Review<Q> extends Placed {
  readonly queue: Q;
  atMs: number;
}

/**
 * What the ready queue knows of one queue: its settings, its lanes, its slots, its limits and its
 * turn. L: its lanes, E: their entries.
 */
export class QueueState<L, E extends QueueEntry> {
  readonly name: string;
  /** Null: never configured. */
  version: number | null = null;
  settings: QueueSettings = defaultQueueSettings;
  ageing: AgeingTable = defaultAgeingTable;
  /** By task type and capability set: see `routingGroupKey`. */
  readonly lanes = new Map<string, L>();
  idleBefore: QueueState<L, E> | null = null;
  idleAfter: QueueState<L, E> | null = null;
  /** Waiting entries by submitted rank. */
  readonly depth: [number, number, number] = [0, 0, 0];
  /** How many of its windows are behind. */
  behind = 0;
  /** Taken or running: what counts against `maxConcurrency`. */
  slotsInUse = 0;
  running = 0;
  /** Grows with every service, across all queues; 0 before the first offer. */
  turn = 0;
  own: readonly Bucket[] = none;
  /** Sorted by name. */
  shared: readonly SharedLimit[] = none;
  sharedKey = '';
  /** Waits for tokens of the queue's own, and what comes after it in the queue waits for it. */
  short: E | null = null;
  // Made when first needed: most queues have no limits, and there may be a million queues.
  #parked: Set<L> | null = null;
  #review: Review<QueueState<L, E>> | null = null;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;
  #probes: Probes | null = null;
  #hasDefaults = true;

  constructor(name: string) {
    this.name = name;
  }

  /** Lanes that left the index of their group until this queue opens to them. */
  get parked(): Iterable<L> {
    return this.#parked ?? none;
  }

  get review(): Review<QueueState<L, E>> {
    this.#review ??= { place: -1, queue: this, atMs: 0 };
    return this.#review;
  }

  get waiting(): number {
    return this.depth[0] + this.depth[1] + this.depth[2];
  }

  /** How many more may be taken, as far as slots and probes go. */
  get places(): number {
    const { maxConcurrency } = this.settings;
    const freeSlots = maxConcurrency === null ? never : maxConcurrency - this.slotsInUse;
    return this.#probes === null ? freeSlots : Math.min(freeSlots, this.#probes.left);
  }

  get hasLimits(): boolean {
    return this.own.length > 0 || this.shared.length > 0;
  }

  /** Holds nothing, and would be made again just as it is, but for its turn and version. */
  get isIdle(): boolean {
    const holdsNothing = this.slotsInUse === 0 && this.waiting === 0 && this.behind === 0;
    return this.#hasDefaults && holdsNothing;
  }

  park(lane: L): void {
    this.#parked ??= new Set();
    this.#parked.add(lane);
  }

  unpark(lane: L): void {
    this.#parked?.delete(lane);
  }

  configure({ version, settings, pausedUntilMs, probes, own, shared }: QueueConfiguration): void {
    this.version = version;
    this.settings = settings;
    this.ageing = new AgeingTable(settings.ageing);
    this.own = own;
    this.shared = shared;
    this.sharedKey = sharedKey(shared);
    this.#pausedUntilMs = settings.paused ? pausedUntilMs : Number.NEGATIVE_INFINITY;
    this.#probes = probes;
    this.#hasDefaults = runsByDefault(settings) && probes === null;
  }

  /**
   * From when on anything may be taken: `nowMs` itself when it may now, infinity when not before
   * something happens (a place is freed, the settings change, a limit becomes known).
   */
  opensAt(nowMs: number): number {
    if (this.places <= 0) return never;
    for (const { bucket } of this.shared) if (bucket === null) return never;
    return Math.max(nowMs, this.#pausedUntilMs);
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
    if (this.#probes !== null) this.#probes.left -= 1;
    for (const bucket of this.own) bucket.spend(cost, takeId, nowMs);
    for (const { bucket } of this.shared) bucket?.spend(cost, takeId, nowMs);
  }

  refundProbe({ outNumber }: E): void {
    if (this.#probes !== null && outNumber > this.#probes.afterOut) this.#probes.left += 1;
  }
}
