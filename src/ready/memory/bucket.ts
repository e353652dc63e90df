import type { Cost, RateLimit } from '../../domain/queue-settings.js';
import {
  bucketShape,
  costIn,
  levelAt,
  refilled,
  requestUnit,
  reshaped,
  settled,
  spent,
  tokensAt,
  waitMsFor,
  type BucketShape,
} from '../../domain/token-bucket.js';
import { WindowUse } from '../../domain/window-use.js';

/** The tokens of one limit. Brought up to date when they change, and computed when looked at. */
export class Bucket {
  readonly name: string;
  readonly #changed: Set<Bucket>;
  #limit: RateLimit;
  #shape: BucketShape;
  #level: number;
  #atMs: number;
  /** The last take that was granted from it. */
  #lastTake = '';
  readonly #use: WindowUse;

  /** Full. Adds itself to `changed` whenever it changes, and now. */
  constructor(name: string, limit: RateLimit, nowMs: number, changed: Set<Bucket>) {
    this.name = name;
    this.#changed = changed;
    this.#limit = limit;
    this.#shape = bucketShape(limit);
    this.#level = this.#shape.capacity;
    this.#atMs = nowMs;
    this.#use = new WindowUse(this.#shape, nowMs);
    changed.add(this);
  }

  get limit(): RateLimit {
    return this.#limit;
  }

  tokensAt(nowMs: number): number {
    return tokensAt(this.#shape, this.#levelAt(nowMs));
  }

  /** What was granted of it in the window up to now. */
  usedAt(nowMs: number): { readonly used: number; readonly countedMs: number } {
    return { used: this.#use.usedAt(nowMs), countedMs: this.#use.countedMsAt(nowMs) };
  }

  /** When it holds what this costs; `nowMs` itself: now. */
  opensAt(cost: Cost, nowMs: number): number {
    return nowMs + waitMsFor(this.#shape, this.#levelAt(nowMs), this.#costOf(cost));
  }

  spend(cost: Cost, takeId: string, nowMs: number): void {
    const count = this.#costOf(cost);
    this.#put(spent(this.#shape, this.#levelAt(nowMs), count), nowMs);
    this.#use.add(count, nowMs);
    this.#lastTake = takeId;
  }

  /** By how much it rose: not at all when a later take was granted from it. */
  refund(cost: Cost, takeId: string, nowMs: number): number {
    return this.#lastTake === takeId ? this.#settle(this.#costOf(cost), 0, nowMs) : 0;
  }

  /** By how much it rose, or fell. Requests are made or not made: there is nothing to settle. */
  settle(reserved: Cost, usage: Cost, nowMs: number): number {
    const { unit } = this.#limit;
    if (unit === requestUnit || !Object.hasOwn(usage, unit)) return 0;
    return this.#settle(this.#costOf(reserved), this.#costOf(usage), nowMs);
  }

  change(limit: RateLimit, nowMs: number): void {
    const shape = bucketShape(limit);
    if (!isSameShape(shape, this.#shape)) {
      this.#put(reshaped(this.#levelAt(nowMs), this.#shape, shape), nowMs);
      this.#use.change(shape, nowMs);
      this.#shape = shape;
    }
    this.#limit = limit;
  }

  restore(tokens: number, nowMs: number): void {
    this.#put(levelAt(this.#shape, tokens), nowMs);
  }

  #settle(reserved: number, used: number, nowMs: number): number {
    const before = this.#levelAt(nowMs);
    this.#put(settled(this.#shape, before, reserved, used), nowMs);
    this.#use.add(used - reserved, nowMs);
    return this.#level - before;
  }

  #levelAt(nowMs: number): number {
    return refilled(this.#shape, this.#level, nowMs - this.#atMs);
  }

  #costOf(cost: Cost): number {
    return costIn(this.#limit.unit, cost);
  }

  #put(level: number, nowMs: number): void {
    this.#level = level;
    this.#atMs = nowMs;
    this.#changed.add(this);
  }
}

function isSameShape(a: BucketShape, b: BucketShape): boolean {
  return a.token === b.token && a.gain === b.gain && a.capacity === b.capacity;
}
