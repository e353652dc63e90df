/** Each bucket is 2 % wider than the one before, so that a quantile is right to 1 %. */
const growth = 1.02;
const logGrowth = Math.log(growth);
/** The last one begins at 30 years. */
const bucketCount = 1_400;

/** How old many tasks are, in bounded memory. */
export class AgeSketch {
  readonly #counts = new Float64Array(bucketCount);
  #total = 0;
  #sumMs = 0;

  /** May be a fraction: a sampled task stands for others. */
  get total(): number {
    return this.#total;
  }

  get sumSeconds(): number {
    return this.#sumMs / 1000;
  }

  add(ageMs: number, count: number): void {
    const bucket = bucketOf(ageMs);
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + count;
    this.#total += count;
    this.#sumMs += Math.max(0, ageMs) * count;
  }

  addAll(other: AgeSketch): void {
    for (const [bucket, count] of other.#counts.entries()) {
      if (count > 0) this.#counts[bucket] = (this.#counts[bucket] ?? 0) + count;
    }
    this.#total += other.#total;
    this.#sumMs += other.#sumMs;
  }

  /** Null: there are none. */
  quantileSeconds(share: number): number | null {
    if (this.#total === 0) return null;
    const rank = share * this.#total;
    let below = 0;
    let last = 0;
    for (const [bucket, count] of this.#counts.entries()) {
      if (count === 0) continue;
      last = bucket;
      below += count;
      // Fractions do not add up exactly.
      if (below >= rank - 1e-6) break;
    }
    return secondsOf(last);
  }
}

function bucketOf(ageMs: number): number {
  if (ageMs < 1) return 0;
  return Math.min(bucketCount - 1, 1 + Math.floor(Math.log(ageMs) / logGrowth));
}

/** The middle of the bucket. */
function secondsOf(bucket: number): number {
  return bucket === 0 ? 0 : growth ** (bucket - 0.5) / 1000;
}
