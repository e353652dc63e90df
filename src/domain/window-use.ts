import type { BucketShape } from './token-bucket.js';

/** A window is counted in so many slots: what is seen of it is right to a tenth of the window. */
const slots = 10;

/**
 * What was granted from a bucket in the window up to now, for people to see. A bucket's level can't tell: it is
 * back at its capacity after 0.4 % of the window. Settlements count when they come. What runs in Redis
 * (`src/ready/redis/lua/parts/buckets.lua`) does the same operations on the same whole numbers.
 */
export class WindowUse {
  #slotMs: number;
  #slot: number;
  /** When the present slot ends: until then a grant is one addition. */
  #endsAtMs: number;
  /** In the present slot. */
  #present = 0;
  /** In those before it, the newest first; the last one has left the window in part. */
  #past: number[] = noneBefore();
  /** Since when it counts. */
  #sinceMs: number;

  constructor(shape: BucketShape, nowMs: number) {
    this.#slotMs = slotMsOf(shape);
    this.#slot = Math.floor(nowMs / this.#slotMs);
    this.#endsAtMs = (this.#slot + 1) * this.#slotMs;
    this.#sinceMs = nowMs;
  }

  add(count: number, nowMs: number): void {
    if (nowMs >= this.#endsAtMs) this.#advance(nowMs);
    this.#present += count;
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
    this.#endsAtMs = (this.#slot + 1) * slotMs;
    this.#present = Math.floor(used);
    this.#past = noneBefore();
  }

  /** Of the slot that leaves the window, as much as is still in it. */
  usedAt(nowMs: number): number {
    this.#advance(nowMs);
    const leaving = this.#past[slots - 1] ?? 0;
    const used = this.#wholeSlots() + (leaving * (this.#endsAtMs - nowMs)) / this.#slotMs;
    // What a settlement brought back may outlast what it was brought back of.
    return Math.max(0, used);
  }

  /** The window, or less when it began to count later. */
  countedMsAt(nowMs: number): number {
    return Math.min(slots * this.#slotMs, nowMs - this.#sinceMs);
  }

  #wholeSlots(): number {
    let sum = this.#present;
    for (let index = 0; index < slots - 1; index += 1) sum += this.#past[index] ?? 0;
    return sum;
  }

  #advance(nowMs: number): void {
    const slot = Math.floor(nowMs / this.#slotMs);
    if (slot <= this.#slot) return;
    const passed = Math.min(slot - this.#slot, slots + 1);
    for (let step = 0; step < passed; step += 1) {
      this.#past.pop();
      this.#past.unshift(this.#present);
      this.#present = 0;
    }
    this.#slot = slot;
    this.#endsAtMs = (slot + 1) * this.#slotMs;
  }
}

function noneBefore(): number[] {
  return new Array<number>(slots).fill(0);
}

/** A token has 250 parts for each millisecond of its window. */
function slotMsOf({ token }: BucketShape): number {
  return token / (250 * slots);
}
