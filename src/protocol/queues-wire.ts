import { defaultAgeing, noAgeing, type Ageing } from '../domain/priority.js';
import type { QueueLimit, RateLimit } from '../domain/queue-settings.js';
import {
  timestampFromWire,
  timestampOrNullFromWire,
  timestampOrNullToWire,
} from './common-wire.js';
import { defined } from './defined.js';
import type { Page } from './page.js';
import { invalidField } from './problem-wire.js';
import type { LimitUse, LimitView, QueueChange, QueueLive, QueueView } from './queues-api.js';
import type {
  AgeingWire,
  LimitUseWire,
  LimitWire,
  QueueChangeWire,
  QueueLimitWire,
  QueueLiveWire,
  QueuePageWire,
  QueueWire,
  RateLimitWire,
} from './queues-schema.js';

export function queueChangeFromWire(wire: QueueChangeWire): QueueChange {
  return defined({
    limits: wire.limits?.map(queueLimitFromWire),
    maxConcurrency: wire.max_concurrency,
    maxReady: wire.max_ready,
    maxActive: wire.max_active,
    maxLanes: wire.max_lanes,
    paused: wire.paused,
    pausedUntil: pausedUntilFromWire(wire),
    ageing:
      wire.ageing === undefined || wire.ageing === null ? wire.ageing : ageingFromWire(wire.ageing),
  });
}

export function queueChangeToWire(change: QueueChange): QueueChangeWire {
  return defined({
    limits: change.limits?.map(queueLimitToWire),
    max_concurrency: change.maxConcurrency,
    max_ready: change.maxReady,
    max_active: change.maxActive,
    max_lanes: change.maxLanes,
    paused: change.paused,
    paused_until:
      change.pausedUntil === undefined ? undefined : timestampOrNullToWire(change.pausedUntil),
    ageing:
      change.ageing === undefined || change.ageing === null
        ? change.ageing
        : ageingToWire(change.ageing),
  });
}

function pausedUntilFromWire({ paused, paused_until: until }: QueueChangeWire) {
  if (until === undefined || until === null) return until;
  if (paused !== true) throw invalidField('/paused_until', 'needs "paused": true');
  return timestampFromWire(until);
}

export function queueToWire(queue: QueueView): QueueWire {
  const { settings } = queue;
  return {
    name: queue.name,
    version: queue.version,
    in_force: queue.inForce,
    limits: settings.limits.map(queueLimitToWire),
    max_concurrency: settings.maxConcurrency,
    max_ready: settings.maxReady,
    max_active: settings.maxActive,
    max_lanes: settings.maxLanes,
    paused: settings.paused,
    paused_until: timestampOrNullToWire(settings.pausedUntil),
    ageing: isOff(settings.ageing) ? null : ageingToWire(settings.ageing),
    live: queueLiveToWire(queue.live),
  };
}

export function queueFromWire(wire: QueueWire): QueueView {
  return {
    name: wire.name,
    version: wire.version,
    inForce: wire.in_force,
    settings: {
      limits: wire.limits.map(queueLimitFromWire),
      maxConcurrency: wire.max_concurrency,
      maxReady: wire.max_ready,
      maxActive: wire.max_active,
      maxLanes: wire.max_lanes,
      paused: wire.paused,
      pausedUntil: timestampOrNullFromWire(wire.paused_until),
      ageing: wire.ageing === null ? noAgeing : ageingFromWire(wire.ageing),
    },
    live: queueLiveFromWire(wire.live),
  };
}

export function queuePageToWire(page: Page<QueueView>): QueuePageWire {
  return { items: page.items.map(queueToWire), next_cursor: page.nextCursor };
}

export function queuePageFromWire(wire: QueuePageWire): Page<QueueView> {
  return { items: wire.items.map(queueFromWire), nextCursor: wire.next_cursor };
}

function queueLiveToWire(live: QueueLive): QueueLiveWire {
  return {
    depth: live.depth,
    effective_depth: live.effectiveDepth,
    backlog: live.backlog,
    active: live.active,
    running: live.running,
    tokens: live.tokens,
    next_token_in_ms: live.nextTokenInMs,
    usage: live.usage.map(limitUseToWire),
    recovery_factor: live.recoveryFactor,
    paused_until: timestampOrNullToWire(live.pausedUntil),
    paused_why: live.pausedWhy,
    circuit: live.circuit,
    oldest_age_seconds: live.oldestAgeSeconds,
    last_minute: live.lastMinute,
  };
}

function limitUseToWire(use: LimitUse): LimitUseWire {
  const { limit, unit, used, allowed } = use;
  return {
    limit,
    unit,
    used,
    allowed,
    per_seconds: use.perSeconds,
    counted_seconds: use.countedSeconds,
    next_in_ms: use.nextInMs,
  };
}

function limitUseFromWire(wire: LimitUseWire): LimitUse {
  const { limit, unit, used, allowed } = wire;
  return {
    limit,
    unit,
    used,
    allowed,
    perSeconds: wire.per_seconds,
    countedSeconds: wire.counted_seconds,
    nextInMs: wire.next_in_ms,
  };
}

function queueLiveFromWire(wire: QueueLiveWire): QueueLive {
  return {
    depth: wire.depth,
    effectiveDepth: wire.effective_depth,
    backlog: wire.backlog,
    active: wire.active,
    running: wire.running,
    tokens: wire.tokens,
    nextTokenInMs: wire.next_token_in_ms,
    usage: wire.usage.map(limitUseFromWire),
    recoveryFactor: wire.recovery_factor,
    pausedUntil: timestampOrNullFromWire(wire.paused_until),
    pausedWhy: wire.paused_why,
    circuit: wire.circuit,
    oldestAgeSeconds: wire.oldest_age_seconds,
    lastMinute: wire.last_minute,
  };
}

function queueLimitFromWire(wire: QueueLimitWire): QueueLimit {
  return 'use' in wire ? { use: wire.use } : rateLimitFromWire(wire);
}

function queueLimitToWire(limit: QueueLimit): QueueLimitWire {
  return 'use' in limit ? { use: limit.use } : rateLimitToWire(limit);
}

export function rateLimitFromWire(wire: RateLimitWire): RateLimit {
  return {
    unit: wire.unit,
    rate: wire.rate,
    perSeconds: wire.per_seconds,
    burst: wire.burst ?? null,
  };
}

export function rateLimitToWire(limit: RateLimit): RateLimitWire {
  return {
    unit: limit.unit,
    rate: limit.rate,
    per_seconds: limit.perSeconds,
    burst: limit.burst,
  };
}

export function limitToWire(limit: LimitView): LimitWire {
  return {
    name: limit.name,
    unit: limit.unit,
    rate: limit.rate,
    per_seconds: limit.perSeconds,
    burst: limit.burst,
    in_force: limit.inForce,
  };
}

export function limitFromWire(wire: LimitWire): LimitView {
  return { name: wire.name, ...rateLimitFromWire(wire), inForce: wire.in_force };
}

function ageingFromWire(wire: AgeingWire): Ageing {
  return {
    lowToMediumMs: ageFromWire(wire.low_to_medium_seconds, defaultAgeing.lowToMediumMs),
    lowToHighMs: ageFromWire(wire.low_to_high_seconds, defaultAgeing.lowToHighMs),
    mediumToHighMs: ageFromWire(wire.medium_to_high_seconds, defaultAgeing.mediumToHighMs),
  };
}

function ageingToWire(ageing: Ageing): AgeingWire {
  return {
    low_to_medium_seconds: ageToWire(ageing.lowToMediumMs),
    low_to_high_seconds: ageToWire(ageing.lowToHighMs),
    medium_to_high_seconds: ageToWire(ageing.mediumToHighMs),
  };
}

function ageFromWire(seconds: number | null | undefined, absentMs: number | null): number | null {
  if (seconds === undefined) return absentMs;
  return seconds === null ? null : Math.round(seconds * 1000);
}

function ageToWire(ms: number | null): number | null {
  return ms === null ? null : ms / 1000;
}

function isOff(ageing: Ageing): boolean {
  return (
    ageing.lowToMediumMs === null && ageing.lowToHighMs === null && ageing.mediumToHighMs === null
  );
}
