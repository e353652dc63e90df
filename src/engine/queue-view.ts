import { recoveryFactor, type Circuit } from '../domain/circuit.js';
import { circuitState } from '../domain/circuit-text.js';
import type { QueueSettings } from '../domain/queue-settings.js';
import { bucketShape, levelAt, sharedBucket, waitMsFor } from '../domain/token-bucket.js';
import type { LimitUse, QueueLive, QueueView } from '../protocol/queues-api.js';
import type { LiveBucket, LiveQueue } from '../ready/ready-queue.js';
import { isPausedAt, pauseOf } from './queue-pause.js';

export interface SeenQueue {
  readonly name: string;
  readonly version: number;
  readonly inForce: boolean;
  readonly settings: QueueSettings;
  readonly circuit: Circuit;
  readonly live: LiveQueue;
  readonly backlog: number;
  readonly active: number | null;
  readonly lastMinute: QueueLive['lastMinute'];
}

/** A queue as people see it: a pause whose time is over is none. */
export function queueView(seen: SeenQueue, nowMs: number): QueueView {
  const { name, version, inForce, live, backlog, active, lastMinute } = seen;
  const settings = isPausedAt(seen.settings, nowMs) ? seen.settings : unpaused(seen.settings);
  return {
    name,
    version,
    inForce,
    settings,
    live: {
      depth: live.depth,
      effectiveDepth: live.effectiveDepth,
      backlog,
      active,
      running: live.running,
      tokens: tokensLeft(live.buckets),
      nextTokenInMs: nextTokenInMs(live.buckets),
      usage: live.buckets.map((bucket) => limitUse(bucket, settings)),
      recoveryFactor: recoveryFactor(seen.circuit),
      ...pauseOf(seen, nowMs),
      circuit: circuitState(seen.circuit, nowMs),
      oldestAgeSeconds: live.oldestAgeMs === null ? null : live.oldestAgeMs / 1000,
      lastMinute,
    },
  };
}

/** How long until a bucket grants a task that costs so many of its unit. */
export function bucketWaitMs({ limit, tokens }: LiveBucket, cost: number): number {
  const shape = bucketShape(limit);
  return waitMsFor(shape, levelAt(shape, tokens), cost);
}

/** Of each unit what the bucket with the fewest has, in thousandths. */
export function tokensLeft(buckets: readonly LiveBucket[]): Record<string, number> {
  const left: Record<string, number> = {};
  for (const { limit, tokens } of buckets) {
    const known = left[limit.unit] ?? Number.POSITIVE_INFINITY;
    left[limit.unit] = Math.min(known, Math.round(tokens * 1000) / 1000);
  }
  return left;
}

function limitUse(live: LiveBucket, { limits }: QueueSettings): LimitUse {
  const { bucket, limit, used, countedMs } = live;
  const shared = limits.find((one) => 'use' in one && sharedBucket(one.use) === bucket);
  return {
    limit: shared !== undefined && 'use' in shared ? shared.use : null,
    unit: limit.unit,
    used: Math.round(used),
    allowed: limit.rate,
    perSeconds: limit.perSeconds,
    countedSeconds: countedMs / 1000,
    nextInMs: bucketWaitMs(live, 1),
  };
}

function nextTokenInMs(buckets: readonly LiveBucket[]): number | null {
  if (buckets.length === 0) return null;
  return Math.max(...buckets.map((bucket) => bucketWaitMs(bucket, 1)));
}

function unpaused(settings: QueueSettings): QueueSettings {
  return { ...settings, paused: false, pausedUntil: null };
}
