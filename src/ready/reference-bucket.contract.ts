import type { Cost, RateLimit } from '../domain/queue-settings.js';
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
} from '../domain/token-bucket.js';
import { WindowUse } from '../domain/window-use.js';

/** A bucket of the reference ready queue: the arithmetic of the domain, and what it was last told. */
export class ReferenceBucket {
  limit: RateLimit;
  hasChanged = true;
  hasRisen = false;
  readonly #nowMs: () => number;
  #level: number;
  #atMs: number;
  #lastGrant = '';
  readonly #use: WindowUse;

  constructor(limit: RateLimit, nowMs: () => number) {
    this.limit = limit;
    this.#nowMs = nowMs;
    this.#level = bucketShape(limit).capacity;
    this.#atMs = nowMs();
    this.#use = new WindowUse(bucketShape(limit), nowMs());
  }

  get used(): number {
    return this.#use.usedAt(this.#nowMs());
  }

  get countedMs(): number {
    return this.#use.countedMsAt(this.#nowMs());
  }

  get tokens(): number {
    return tokensAt(bucketShape(this.limit), this.#levelNow());
  }

  waitMsFor(cost: Cost): number {
    return waitMsFor(bucketShape(this.limit), this.#levelNow(), costIn(this.limit.unit, cost));
  }

  spend(cost: Cost, grant: string): void {
    const count = costIn(this.limit.unit, cost);
    this.#put(spent(bucketShape(this.limit), this.#levelNow(), count));
    this.#use.add(count, this.#nowMs());
    this.#lastGrant = grant;
  }

  refund(cost: Cost, grant: string): void {
    if (this.#lastGrant === grant) this.#settle(costIn(this.limit.unit, cost), 0);
  }

  settle(reserved: Cost, usage: Cost, mayRise: boolean): void {
    const { unit } = this.limit;
    const used = usage[unit];
    if (unit === requestUnit || used === undefined) return;
    if (mayRise || used > costIn(unit, reserved)) this.#settle(costIn(unit, reserved), used);
  }

  change(limit: RateLimit): void {
    const [from, to] = [bucketShape(this.limit), bucketShape(limit)];
    if (JSON.stringify(from) !== JSON.stringify(to)) {
      this.#put(reshaped(this.#levelNow(), from, to));
      this.#use.change(to, this.#nowMs());
    }
    this.limit = limit;
  }

  restore(tokens: number): void {
    this.#put(levelAt(bucketShape(this.limit), tokens));
  }

  #settle(reserved: number, used: number): void {
    const before = this.#levelNow();
    this.#put(settled(bucketShape(this.limit), before, reserved, used));
    this.#use.add(used - reserved, this.#nowMs());
    if (this.#level > before) this.hasRisen = true;
  }

  #put(level: number): void {
    this.#level = level;
    this.#atMs = this.#nowMs();
    this.hasChanged = true;
  }

  #levelNow(): number {
    return refilled(bucketShape(this.limit), this.#level, this.#nowMs() - this.#atMs);
  }
}
