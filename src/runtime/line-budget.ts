/** So many lines at once, then one a second. */
const burstLines = 20;
const lineMs = 1_000;
const maxKinds = 10;

/** How many lines of one sort are written one by one. The others are counted by kind. */
export class LineBudget {
  readonly #leftOut = new Map<string, number>();
  #lines = burstLines;
  #refilledAtMs: number;

  constructor(nowMs: number) {
    this.#refilledAtMs = nowMs;
  }

  /** False: it is counted instead. */
  take(kind: string, nowMs: number): boolean {
    const refilled = Math.floor((nowMs - this.#refilledAtMs) / lineMs);
    if (refilled > 0) {
      this.#lines = Math.min(burstLines, this.#lines + refilled);
      this.#refilledAtMs += refilled * lineMs;
    }
    if (this.#lines > 0) {
      this.#lines -= 1;
      return true;
    }
    const isOther = !this.#leftOut.has(kind) && this.#leftOut.size >= maxKinds;
    const counted = isOther ? 'others' : kind;
    this.#leftOut.set(counted, (this.#leftOut.get(counted) ?? 0) + 1);
    return false;
  }

  /** Null: none were left out since the last call. */
  takeLeftOut(): { readonly leftOut: number; readonly kinds: Record<string, number> } | null {
    if (this.#leftOut.size === 0) return null;
    const kinds = Object.fromEntries(this.#leftOut);
    this.#leftOut.clear();
    const leftOut = Object.values(kinds).reduce((sum, count) => sum + count, 0);
    return { leftOut, kinds };
  }
}
