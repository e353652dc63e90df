import { defaultAgeing, noAgeing, type Ageing } from '../domain/priority.js';
import type { QueueLimit, RateLimit } from '../domain/queue-settings.js';
import { timestampOrNullFromWire, timestampOrNullToWire } from './common-wire.js';
import { defined } from './defined.js';
import { timestampFieldToWire, writeRequest, type FieldsOf } from './fields.js';
import type { Page } from './page.js';
import type {
  CommonRates,
  LimitUse,
  LimitView,
  QueueChange,
  QueueDraft,
  QueueLive,
  QueueView,
  RateLimitDraft,
} from './queues-api.js';
import type {
  AgeingWire,
  LimitUseWire,
  LimitWire,
  QueueChangeWire,
  QueueDraftWire,
  QueueLimitWire,
  QueueLiveWire,
  QueuePageWire,
  QueueWire,
  RateLimitWire,
} from './queues-schema.js';

export const rateFields = {
  unit: 'unit',
  rate: 'rate',
  perSeconds: 'per_seconds',
  burst: 'burst',
} as const satisfies FieldsOf<RateLimitDraft>;

export const queueFields = {
  limits: {
    wire: 'limits',
    items: { ...rateFields, use: 'use' },
    members: { rps: 'rps', rpm: 'rpm', tpm: 'tpm' } satisfies FieldsOf<CommonRates>,
  },
  maxConcurrency: 'max_concurrency',
  maxReady: 'max_ready',
  maxActive: 'max_active',
  maxLanes: 'max_lanes',
  paused: 'paused',
  pausedUntil: { wire: 'paused_until', write: timestampFieldToWire },
  ageing: {
    wire: 'ageing',
    members: {
      lowToMediumMs: { wire: 'low_to_medium_seconds', write: inSeconds },
      lowToHighMs: { wire: 'low_to_high_seconds', write: inSeconds },
      mediumToHighMs: { wire: 'medium_to_high_seconds', write: inSeconds },
    } satisfies FieldsOf<Ageing>,
  },
} as const satisfies FieldsOf<QueueDraft>;

/** A draft and a change have the same fields. */
export function queueDraftFromWire(wire: QueueDraftWire): QueueDraft;
export function queueDraftFromWire(wire: QueueChangeWire): QueueChange;
export function queueDraftFromWire(wire: QueueChangeWire): QueueChange {
  const { limits, ageing } = wire;
  return defined({
    limits: Array.isArray(limits) ? limits.map(queueLimitFromWire) : limits,
    maxConcurrency: wire.max_concurrency,
    maxReady: wire.max_ready,
    maxActive: wire.max_active,
    maxLanes: wire.max_lanes,
    paused: wire.paused,
    pausedUntil:
      wire.paused_until === undefined ? undefined : timestampOrNullFromWire(wire.paused_until),
    ageing: ageing === undefined || ageing === null ? ageing : partOfAgeing(ageing),
  });
}

export function queueDraftToWire(draft: QueueDraft): QueueDraftWire {
  return writeRequest(queueFields, draft) as QueueDraftWire;
}

export function queueChangeToWire(change: QueueChange): QueueChangeWire {
  return writeRequest(queueFields, change) as QueueChangeWire;
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

export function rateLimitDraftToWire(limit: RateLimitDraft): RateLimitWire {
  return writeRequest(rateFields, limit) as RateLimitWire;
}

function rateLimitToWire(limit: RateLimit): RateLimitWire {
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
  return { ...defaultAgeing, ...partOfAgeing(wire) };
}

function partOfAgeing(wire: AgeingWire): Partial<Ageing> {
  return defined({
    lowToMediumMs: ageFromWire(wire.low_to_medium_seconds),
    lowToHighMs: ageFromWire(wire.low_to_high_seconds),
    mediumToHighMs: ageFromWire(wire.medium_to_high_seconds),
  });
}

function ageingToWire(ageing: Ageing): AgeingWire {
  return {
    low_to_medium_seconds: ageToWire(ageing.lowToMediumMs),
    low_to_high_seconds: ageToWire(ageing.lowToHighMs),
    medium_to_high_seconds: ageToWire(ageing.mediumToHighMs),
  };
}

function ageFromWire(seconds: number | null | undefined): number | null | undefined {
  return typeof seconds === 'number' ? Math.round(seconds * 1000) : seconds;
}

function inSeconds(ms: unknown): unknown {
  return typeof ms === 'number' ? ms / 1000 : ms;
}

function ageToWire(ms: number | null): number | null {
  return ms === null ? null : ms / 1000;
}

function isOff(ageing: Ageing): boolean {
  return (
    ageing.lowToMediumMs === null && ageing.lowToHighMs === null && ageing.mediumToHighMs === null
  );
}
