import {
  runsByDefault,
  type QueueLimit,
  type QueueSettings,
  type RateLimit,
} from '../../domain/queue-settings.js';
import { bucketShape, ownBucket, sharedBucket } from '../../domain/token-bucket.js';
import { thresholdsOf } from './ageing-thresholds.js';
import { byWeight } from './in-chunks.js';
import { stepsAtOnce, stepsOf } from './step-bound.js';
import type { Configuration, ConfiguredLimit, ConfiguredQueue } from '../ready-queue.js';

/** By bucket: the tokens to start with. */
export type StartingTokens = ReadonlyMap<string, number>;

/**
 * Limits first, as the configuration has it. Each part is one script, which may make less of it: it alone knows
 * which lanes are to be placed anew.
 */
export function inParts({ limits, queues }: Configuration): Configuration[] {
  return [
    ...byWeight(limits, stepsAtOnce, () => stepsOf.limit + stepsOf.newLimit).map((part) => ({
      ...{ limits: part, queues: [] },
    })),
    ...byWeight(queues, stepsAtOnce, stepsOfQueue).map((part) => ({ limits: [], queues: part })),
  ];
}

function stepsOfQueue({ settings }: ConfiguredQueue): number {
  return stepsOf.newQueue + settings.limits.length * (stepsOf.limit + stepsOf.newLimit);
}

export function isNothing({ limits, queues }: Configuration): boolean {
  return limits.length + queues.length === 0;
}

/** What is left when so many of it were made. */
export function afterFirst({ limits, queues }: Configuration, done: number): Configuration {
  return {
    limits: limits.slice(done),
    queues: queues.slice(Math.max(0, done - limits.length)),
  };
}

/** As the configure script reads it. What is infinite or unknown is left out. */
export function packConfiguration(
  { limits, queues }: Configuration,
  tokens: StartingTokens = new Map(),
): string {
  return JSON.stringify({
    limits: limits.map((limit) => packLimit(limit, tokens)),
    queues: queues.map((queue) => packQueue(queue, tokens)),
  });
}

function packLimit({ name, version, limit }: ConfiguredLimit, tokens: StartingTokens) {
  return { name, version, ...packBucket(sharedBucket(name), limit, tokens) };
}

function packBucket(bucket: string, limit: RateLimit, tokens: StartingTokens) {
  const { token, gain, capacity } = bucketShape(limit);
  const { unit } = limit;
  const text = JSON.stringify(limit);
  return { bucket, unit, token, gain, capacity, limit: text, tokens: tokens.get(bucket) };
}

function packQueue(configured: ConfiguredQueue, tokens: StartingTokens) {
  const { name, version, settings, pausedForMs, probes } = configured;
  const { lowToMediumMs, lowToHighMs, mediumToHighMs } = thresholdsOf(settings.ageing);
  return {
    name,
    version,
    settings: {
      isDefault: runsByDefault(settings) && probes === null,
      class: sharedNames(settings).sort().join('\t'),
      sharedCount: sharedNames(settings).length,
      limits: settings.limits.map((limit) => packUse(name, limit)),
      maxReady: settings.maxReady,
      maxConcurrency: settings.maxConcurrency ?? undefined,
      isPaused: settings.paused,
      pausedFor: pausedForMs === null ? undefined : Math.ceil(pausedForMs),
      probes: probes ?? undefined,
      lowToMedium: finite(lowToMediumMs),
      lowToHigh: finite(lowToHighMs),
      mediumToHigh: finite(mediumToHighMs),
    },
    buckets: settings.limits.flatMap((limit) =>
      'use' in limit ? [] : [packBucket(ownBucket(name, limit.unit), limit, tokens)],
    ),
  };
}

function packUse(queue: string, limit: QueueLimit) {
  return 'use' in limit
    ? { isShared: true, name: limit.use, bucket: sharedBucket(limit.use) }
    : { isShared: false, name: limit.unit, bucket: ownBucket(queue, limit.unit) };
}

function sharedNames({ limits }: QueueSettings): string[] {
  return [...new Set(limits.flatMap((limit) => ('use' in limit ? [limit.use] : [])))];
}

function finite(ms: number): number | undefined {
  return Number.isFinite(ms) ? ms : undefined;
}

/** A queue like this would be made again just as it is. */
