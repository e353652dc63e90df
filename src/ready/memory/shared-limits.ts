import { sharedBucket } from '../../domain/token-bucket.js';
import type { Bucket } from './bucket.js';
import type { Buckets } from './buckets.js';
import type { ConfiguredLimit } from '../ready-queue.js';

/** A limit that queues use by its name. */
export interface SharedLimit {
  readonly name: string;
  version: number | null;
  /** Null: nobody has said yet what it is. */
  bucket: Bucket | null;
}

/** The limits that are known, and those that queues name before they are. */
export class SharedLimits {
  readonly #limits = new Map<string, SharedLimit>();
  readonly #buckets: Buckets;

  constructor(buckets: Buckets) {
    this.#buckets = buckets;
  }

  /** Sorted by name, without duplicates: the same set is the same list. */
  named(names: readonly string[]): SharedLimit[] {
    return [...new Set(names)].sort().map((name) => this.#ensure(name));
  }

  /** False: the version is not newer than the one held. */
  configure({ name, version, limit }: ConfiguredLimit, nowMs: number): boolean {
    const shared = this.#ensure(name);
    if (shared.version !== null && version <= shared.version) return false;
    shared.version = version;
    shared.bucket = this.#buckets.put(sharedBucket(name), limit, nowMs);
    return true;
  }

  clear(): void {
    this.#limits.clear();
  }

  #ensure(name: string): SharedLimit {
    let limit = this.#limits.get(name);
    if (limit === undefined) {
      limit = { name, version: null, bucket: null };
      this.#limits.set(name, limit);
    }
    return limit;
  }
}

/** The same text for the same set, given sorted; empty: none. Names can't hold the separator. */
export function sharedKey(shared: readonly SharedLimit[]): string {
  return shared.map(({ name }) => name).join('\n');
}
