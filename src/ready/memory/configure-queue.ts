import { ownBucket } from '../../domain/token-bucket.js';
import type { Buckets } from './buckets.js';
import type { Queue } from './ready-lane.js';
import type { ConfiguredQueue } from '../ready-queue.js';
import { sharedKey, type SharedLimits } from './shared-limits.js';

/** What the limits of a queue are made of. */
export interface Limits {
  readonly buckets: Buckets;
  readonly shared: SharedLimits;
}

interface Present {
  readonly nowMs: number;
  /** The number of the entry that was taken last. */
  readonly lastOut: number;
}

/** False: the version is not newer than the one held. */
export function configureQueue(
  queue: Queue,
  { version, settings, pausedForMs, probes }: ConfiguredQueue,
  { buckets, shared }: Limits,
  { nowMs, lastOut }: Present,
): boolean {
  if (queue.version !== null && version <= queue.version) return false;
  const { own: before, sharedKey: sharedBefore } = queue;
  const own = new Set(
    settings.limits.flatMap((limit) =>
      'use' in limit ? [] : [buckets.put(ownBucket(queue.name, limit.unit), limit, nowMs)],
    ),
  );
  for (const bucket of before) if (!own.has(bucket)) buckets.drop(bucket.name);
  const named = shared.named(
    settings.limits.flatMap((limit) => ('use' in limit ? [limit.use] : [])),
  );
  const areOwnSame = own.size === before.length && before.every((bucket) => own.has(bucket));
  const areSame = areOwnSame && sharedKey(named) === sharedBefore;
  queue.configure({
    version,
    settings,
    // Never a moment too early: what is left of a millisecond counts as a whole one.
    pausedUntilMs: nowMs + Math.ceil(pausedForMs ?? Number.POSITIVE_INFINITY),
    probes: probes === null ? null : { left: probes, afterOut: lastOut },
    own: [...own],
    shared: named,
    limitsAfterOut: areSame ? queue.limitsAfterOut : lastOut,
  });
  return true;
}
