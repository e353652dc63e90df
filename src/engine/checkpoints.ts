import {
  costIn,
  fullTokens,
  ownBucket,
  sharedBucket,
  tokensAfterLoss,
  tokensAtMost,
} from '../domain/token-bucket.js';
import type { RateLimit } from '../domain/queue-settings.js';
import type { BucketLevel, Configuration } from '../ready/ready-queue.js';
import {
  closeLevels,
  findLevels,
  reopenLevels,
  saveLevels,
  startLevels,
} from '../store/bucket-levels.js';
import type { RunningRow } from '../store/sweep-attempts.js';
import { instant, type EngineContext } from './context.js';

const idleIntervalMs = 1_000;
const busyIntervalMs = 200;

/**
 * The levels of all buckets, written to Postgres while they change: what the ready queue loses, it goes
 * on with from here, and neither overshoots nor forfeits a slow limit.
 */
export class Checkpoints {
  readonly #context: EngineContext;
  /** Oldest first. */
  readonly #unsaved: { readonly levels: readonly BucketLevel[]; readonly asOfMs: number }[] = [];

  constructor(context: EngineContext) {
    this.#context = context;
  }

  async tick(): Promise<number> {
    return (await this.save()) ? busyIntervalMs : idleIntervalMs;
  }

  /** Answers whether anything had changed. */
  async save(): Promise<boolean> {
    const asOfMs = performance.now();
    const levels = await this.#context.ready.levels();
    // The ready queue tells of a change once: what could not be written stays here.
    if (levels.length > 0) this.#unsaved.push({ levels, asOfMs });
    for (let batch = this.#unsaved[0]; batch !== undefined; batch = this.#unsaved[0]) {
      const ageMs = performance.now() - batch.asOfMs;
      await saveLevels(this.#context.db, batch.levels, ageMs, false, instant(this.#context));
      this.#unsaved.shift();
    }
    return levels.length > 0;
  }

  /** Before the ready queue hears of a limit: one that was used can't be taken for a new one. */
  async begin(configuration: Configuration): Promise<void> {
    const levels = [...bucketsOf(configuration)].map(([bucket, { limit }]) => ({
      bucket,
      tokens: fullTokens(limit),
    }));
    if (levels.length > 0) await startLevels(this.#context.db, levels, instant(this.#context));
  }

  /**
   * This process alone grants, and grants no more: what follows may go on from here exactly. Not if
   * another one may grant by now: its levels count, and not these.
   */
  async saveFinally(isAlone: () => boolean): Promise<void> {
    if (isAlone()) await this.save();
    if (isAlone()) await closeLevels(this.#context.db);
  }

  /** What every bucket goes on with; from here on grants may go unrecorded for a while again. */
  async restore(
    configuration: Configuration,
    running: readonly RunningRow[],
  ): Promise<BucketLevel[]> {
    const saved = await findLevels(this.#context.db, instant(this.#context));
    await this.begin(configuration);
    await reopenLevels(this.#context.db);
    const checkpoints = new Map(saved.map((checkpoint) => [checkpoint.bucket, checkpoint]));
    const runningIn = byQueue(running);
    return [...bucketsOf(configuration)].flatMap(([bucket, { limit, queues }]) => {
      const known = [...queues].flatMap((queue) => runningIn.get(queue) ?? []);
      const checkpoint = checkpoints.get(bucket);
      if (checkpoint === undefined && known.length === 0) return [];
      const grants = known.map((task) => grantOf(task, limit));
      const most = tokensAtMost(limit, grants);
      const left = checkpoint === undefined ? most : tokensAfterLoss(limit, checkpoint);
      return [{ bucket, tokens: Math.min(most, left) }];
    });
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

function byQueue(running: readonly RunningRow[]): Map<string, RunningRow[]> {
  const found = new Map<string, RunningRow[]>();
  for (const task of running) {
    const others = found.get(task.queue);
    if (others === undefined) found.set(task.queue, [task]);
    else others.push(task);
  }
  return found;
}

function grantOf({ cost, heldMs }: RunningRow, { unit }: RateLimit) {
  return { cost: costIn(unit, cost), agoMs: Math.max(0, heldMs) };
}
