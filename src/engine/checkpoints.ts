import {
  costIn,
  maxUnrecordedMs,
  ownBucket,
  sharedBucket,
  tokensAfterLoss,
  tokensAtMost,
} from '../domain/token-bucket.js';
import type { RateLimit } from '../domain/queue-settings.js';
import type { BucketLevel, Configuration } from '../ready/ready-queue.js';
import { closeLevels, findLevels, reopenLevels, saveLevels } from '../store/bucket-levels.js';
import type { RunningRow } from '../store/sweep-attempts.js';
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
  async restore(
    configuration: Configuration,
    running: readonly RunningRow[],
  ): Promise<BucketLevel[]> {
    const saved = await findLevels(this.#context.db, instant(this.#context));
    await reopenLevels(this.#context.db);
    this.#savedMs = performance.now();
    const checkpoints = new Map(saved.map((checkpoint) => [checkpoint.bucket, checkpoint]));
    const levels: BucketLevel[] = [];
    for (const [bucket, { limit, queues }] of bucketsOf(configuration)) {
      const known = running.filter(({ queue }) => queues.has(queue));
      const checkpoint = checkpoints.get(bucket);
      if (checkpoint === undefined && known.length === 0) continue;
      const most = tokensAtMost(
        limit,
        known.map((task) => grantOf(task, limit)),
      );
      const left = checkpoint === undefined ? most : tokensAfterLoss(limit, checkpoint);
      levels.push({ bucket, tokens: Math.min(most, left) });
    }
    return levels;
  }
}

interface BucketUse {
  readonly limit: RateLimit;
  readonly queues: Set<string>;
}

function bucketsOf({ queues, limits }: Configuration): Map<string, BucketUse> {
  const found = new Map<string, BucketUse>();
  for (const { name, limit } of limits) {
    found.set(sharedBucket(name), { limit, queues: new Set() });
  }
  for (const { name, settings } of queues) {
    for (const limit of settings.limits) {
      if ('use' in limit) found.get(sharedBucket(limit.use))?.queues.add(name);
      else found.set(ownBucket(name, limit.unit), { limit, queues: new Set([name]) });
    }
  }
  return found;
}

function grantOf({ cost, heldMs }: RunningRow, { unit }: RateLimit) {
  return { cost: costIn(unit, cost), agoMs: Math.max(0, heldMs) };
}
