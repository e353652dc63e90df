import {
  maxUnrecordedMs,
  ownBucket,
  sharedBucket,
  tokensAfterLoss,
} from '../domain/token-bucket.js';
import type { RateLimit } from '../domain/queue-settings.js';
import type { BucketLevel, Configuration } from '../ready/ready-queue.js';
import { closeLevels, findLevels, reopenLevels, saveLevels } from '../store/bucket-levels.js';
import { instant, type EngineContext } from './context.js';

const saveIntervalMs = 1_000;

/**
 * The levels of all buckets, written to Postgres once a second while they change: what the ready
 * queue loses, it goes on with from here, and neither overshoots nor forfeits a slow limit.
 */
export class Checkpoints {
  readonly #context: EngineContext;
  readonly #hasLimits: () => boolean;
  /** Oldest first. */
  readonly #unsaved: { readonly levels: readonly BucketLevel[]; readonly asOfMs: number }[] = [];
  #savedMs = Number.NEGATIVE_INFINITY;

  constructor(context: EngineContext, hasLimits: () => boolean) {
    this.#context = context;
    this.#hasLimits = hasLimits;
  }

  /** False: what would be granted now might never be written down. */
  areFresh(): boolean {
    return !this.#hasLimits() || performance.now() - this.#savedMs < maxUnrecordedMs - 1_000;
  }

  async tick(): Promise<number> {
    await this.save();
    return saveIntervalMs;
  }

  async save(): Promise<void> {
    const beganMs = performance.now();
    const levels = await this.#context.ready.levels();
    // The ready queue tells of a change once: what could not be written stays here.
    if (levels.length > 0) this.#unsaved.push({ levels, asOfMs: beganMs });
    for (let batch = this.#unsaved[0]; batch !== undefined; batch = this.#unsaved[0]) {
      const ageMs = performance.now() - batch.asOfMs;
      await saveLevels(this.#context.db, batch.levels, ageMs, false, instant(this.#context));
      this.#unsaved.shift();
    }
    this.#savedMs = beganMs;
  }

  /** This process alone grants, and grants no more: what follows may go on from here exactly. */
  async saveFinally(): Promise<void> {
    await this.save();
    await closeLevels(this.#context.db);
  }

  /** What every bucket goes on with; from here on grants may go unrecorded for a while again. */
  async restore(configuration: Configuration): Promise<BucketLevel[]> {
    const saved = await findLevels(this.#context.db, instant(this.#context));
    await reopenLevels(this.#context.db);
    this.#savedMs = performance.now();
    const limits = limitsByBucket(configuration);
    return saved.flatMap(({ bucket, ...checkpoint }) => {
      const limit = limits.get(bucket);
      return limit === undefined ? [] : [{ bucket, tokens: tokensAfterLoss(limit, checkpoint) }];
    });
  }
}

function limitsByBucket({ queues, limits }: Configuration): Map<string, RateLimit> {
  const found = new Map<string, RateLimit>();
  for (const { name, limit } of limits) found.set(sharedBucket(name), limit);
  for (const { name, settings } of queues) {
    for (const limit of settings.limits) {
      if (!('use' in limit)) found.set(ownBucket(name, limit.unit), limit);
    }
  }
  return found;
}
