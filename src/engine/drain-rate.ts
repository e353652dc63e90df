interface Sample {
  readonly atMs: number;
  readonly ended: number;
}

/** A rate is taken over at least this long, and looks back about a minute. */
const leastMs = 1_000;
const windowMs = 60_000;
const maxScopes = 10_000;

/**
 * How fast places get free: from the number that ever ended, by all servers, as read each time
 * somebody is refused.
 */
export class DrainRate {
  readonly #samples = new Map<string, Sample[]>();

  /** Null while it is not known, or when nothing ended. */
  perSecond(scope: string, ended: number, nowMs: number): number | null {
    const samples = this.#recent(scope, nowMs);
    const oldest = samples[0];
    const latest = samples.at(-1);
    if (latest === undefined || nowMs - latest.atMs >= leastMs) {
      samples.push({ atMs: nowMs, ended });
      this.#remember(scope, samples);
    }
    if (oldest === undefined || nowMs - oldest.atMs < leastMs) return null;
    const rate = ((ended - oldest.ended) * 1000) / (nowMs - oldest.atMs);
    return rate > 0 ? rate : null;
  }

  /** With one sample that is older than the window, if there is one: the rate is then over all of it. */
  #recent(scope: string, nowMs: number): Sample[] {
    const samples = this.#samples.get(scope) ?? [];
    const firstInside = samples.findIndex(({ atMs }) => nowMs - atMs <= windowMs);
    if (firstInside === -1) return samples.slice(-1);
    return samples.slice(Math.max(0, firstInside - 1));
  }

  #remember(scope: string, samples: Sample[]): void {
    if (this.#samples.size >= maxScopes && !this.#samples.has(scope)) this.#samples.clear();
    this.#samples.set(scope, samples);
  }
}
