const remembered = 1_000;

/** How calls to the leader fared: counts since this process began, and the last thousand round trips. */
export class RoundTrips {
  readonly #lastMs: number[] = [];
  #next = 0;
  #answered = 0;
  #lost = 0;
  #sumMs = 0;

  answered(tookMs: number): void {
    this.#answered += 1;
    this.#sumMs += tookMs;
    this.#lastMs[this.#next] = tookMs;
    this.#next = (this.#next + 1) % remembered;
  }

  lost(count: number): void {
    this.#lost += count;
  }

  get counts(): { readonly answered: number; readonly lost: number; readonly sumMs: number } {
    return { answered: this.#answered, lost: this.#lost, sumMs: this.#sumMs };
  }

  /** Null: no call was answered yet. */
  quantileMs(share: number): number | null {
    const sorted = this.#lastMs.toSorted((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null;
  }
}
