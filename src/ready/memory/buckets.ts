import type { RateLimit } from '../../domain/queue-settings.js';
import { Bucket } from './bucket.js';
import type { BucketLevel } from '../ready-queue.js';

/** Every bucket by its name, and which have changed since somebody asked. */
export class Buckets {
  readonly #buckets = new Map<string, Bucket>();
  readonly #changed = new Set<Bucket>();

  /** The bucket of this name for this limit: the same tokens if it counted that unit before. */
  put(name: string, limit: RateLimit, nowMs: number): Bucket {
    const held = this.#buckets.get(name);
    if (held?.limit.unit === limit.unit) {
      held.change(limit, nowMs);
      return held;
    }
    this.drop(name);
    const bucket = new Bucket(name, limit, nowMs, this.#changed);
    this.#buckets.set(name, bucket);
    return bucket;
  }

  drop(name: string): void {
    const bucket = this.#buckets.get(name);
    if (bucket === undefined) return;
    this.#buckets.delete(name);
    this.#changed.delete(bucket);
  }

  restore(levels: readonly BucketLevel[], nowMs: number): void {
    for (const { bucket, tokens } of levels) this.#buckets.get(bucket)?.restore(tokens, nowMs);
  }

  /** Of those that changed since it was last asked. */
  levels(nowMs: number): BucketLevel[] {
    const changed = [...this.#changed];
    this.#changed.clear();
    return changed.map((bucket) => ({ bucket: bucket.name, tokens: bucket.tokensAt(nowMs) }));
  }

  clear(): void {
    this.#buckets.clear();
    this.#changed.clear();
  }
}
