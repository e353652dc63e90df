import { ownBucket, sharedBucket } from '../../domain/token-bucket.js';
import { waitingIn } from './queue-survey.js';
import type { Queue } from './ready-lane.js';
import type { LiveBucket, LiveQueue } from '../ready-queue.js';

const nothing = { high: 0, medium: 0, low: 0 };

export function liveQueue(queue: Queue | null, nowMs: number): LiveQueue {
  if (queue === null) {
    return {
      depth: nothing,
      effectiveDepth: nothing,
      running: 0,
      oldestAgeMs: null,
      buckets: [],
    };
  }
  const { high, medium, low } = waitingIn(queue, nowMs);
  const ages = [high, medium, low].flatMap(({ oldestAgeMs }) => oldestAgeMs ?? []);
  return {
    depth: { high: queue.waitingOf(0), medium: queue.waitingOf(1), low: queue.waitingOf(2) },
    effectiveDepth: { high: high.count, medium: medium.count, low: low.count },
    running: queue.running,
    oldestAgeMs: ages.length === 0 ? null : Math.max(...ages),
    buckets: liveBuckets(queue, nowMs),
  };
}

/** In the order of the settings; a shared limit that is not known has none. */
function liveBuckets(queue: Queue, nowMs: number): LiveBucket[] {
  const held = new Map([
    ...queue.own.map((bucket) => [bucket.name, bucket] as const),
    ...queue.shared.map(({ name, bucket }) => [sharedBucket(name), bucket] as const),
  ]);
  return queue.settings.limits.flatMap((limit) => {
    const name = 'use' in limit ? sharedBucket(limit.use) : ownBucket(queue.name, limit.unit);
    const bucket = held.get(name) ?? null;
    if (bucket === null) return [];
    const tokens = bucket.tokensAt(nowMs);
    return [{ bucket: name, tokens, limit: bucket.limit, ...bucket.usedAt(nowMs) }];
  });
}
