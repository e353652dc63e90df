import type { BucketShape } from './token-bucket.js';

/** A window is counted in so many slots: what is seen of it is right to a tenth of the window. */
const slots = 10;

/**
 * What was granted from a bucket in the window up to now, for people to see. A bucket's level can't tell: it is
 * back at its capacity after 0.4 % of the window. Settlements count when they come. What runs in Redis
 * (`src/ready/redis/scripts/buckets.ts`) does the same operations on the same whole numbers.
 */
export class WindowUse {
  /** By slot, the present one first; the last one has left the window in part. */
  #counts: number[] = new Array<number>(slots + 1).fill(0);
  #slotMs: number;
  #slot: number;
  /** Since when it counts. */
  #sinceMs: number;

  constructor(shape: BucketShape, nowMs: number) {
    this.#slotMs = slotMsOf(shape);
    this.#slot = Math.floor(nowMs / this.#slotMs);
    this.#sinceMs = nowMs;
  }

  add(count: number, nowMs: number): void {
    this.#advance(nowMs);
    this.#counts[0] = (this.#counts[0] ?? 0) + count;
  }

  /** The limit has another window: what was used counts as used now, less what falls out of a shorter one. */
  change(shape: BucketShape, nowMs: number): void {
    const slotMs = slotMsOf(shape);
    if (slotMs === this.#slotMs) return;
    this.#advance(nowMs);
    const used = this.#wholeSlots() * Math.min(1, slotMs / this.#slotMs);
    this.#sinceMs = Math.max(this.#sinceMs, nowMs - slots * this.#slotMs);
    this.#slotMs = slotMs;
    this.#slot = Math.floor(nowMs / slotMs);
    this.#counts = new Array<number>(slots + 1).fill(0);
    this.#counts[0] = Math.floor(used);
  }

  /** Of the slot that leaves the window, as much as is still in it. */
  usedAt(nowMs: number): number {
    this.#advance(nowMs);
    const leftMs = this.#slotMs - (nowMs - this.#slot * this.#slotMs);
    const used = this.#wholeSlots() + ((this.#counts[slots] ?? 0) * leftMs) / this.#slotMs;
    // What a settlement brought back may outlast what it was brought back of.
    return Math.max(0, used);
  }

  /** The window, or less when it began to count later. */
  countedMsAt(nowMs: number): number {
    return Math.min(slots * this.#slotMs, nowMs - this.#sinceMs);
  }

  #wholeSlots(): number {
    let sum = 0;
    for (let slot = 0; slot < slots; slot += 1) sum += this.#counts[slot] ?? 0;
    return sum;
  }

  #advance(nowMs: number): void {
    const slot = Math.floor(nowMs / this.#slotMs);
    if (slot <= this.#slot) return;
    const passed = Math.min(slot - this.#slot, slots + 1);
    for (let step = 0; step < passed; step += 1) {
      this.#counts.pop();
      this.#counts.unshift(0);
    }
    this.#slot = slot;
  }
}

/** A token has 250 parts for each millisecond of its window. */
function slotMsOf({ token }: BucketShape): number {
  return token / (250 * slots);
}
