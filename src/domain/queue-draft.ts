import type { FieldError } from './errors.js';
import { noAgeing, type Ageing } from './priority.js';
import {
  defaultQueueSettings,
  type QueueLimit,
  type QueueSettings,
  type RateLimit,
} from './queue-settings.js';
import { requestUnit } from './token-bucket.js';

/** A rate limit as a caller gives it. Without `burst` it holds in every window. */
export type RateLimitDraft = Omit<RateLimit, 'burst'> & { readonly burst?: number | null };

export type QueueLimitDraft = RateLimitDraft | { readonly use: string };

/** Rates as people say them. Each is a limit of its unit, without a burst. */
export interface CommonRates<Rate = number> {
  /** Requests a second. */
  readonly rps?: Rate;
  /** Requests a minute. */
  readonly rpm?: Rate;
  /** Tokens a minute. */
  readonly tpm?: Rate;
}

type Limits<Rate> = readonly QueueLimitDraft[] | CommonRates<Rate>;

type Draft<Rate> = Partial<
  Omit<QueueSettings, 'limits' | 'ageing'> & {
    readonly limits: Limits<Rate>;
    /** Null: nothing ages. */
    readonly ageing: Partial<Ageing> | null;
  }
>;

/** The whole configuration of a queue: what is absent gets its default. */
export type QueueDraft = Draft<number>;

/**
 * What changes of a configuration: what is absent stays. A list of limits replaces all limits; rates by their names
 * replace those of the same unit and keep the others, and null takes a rate away.
 */
export type QueueChange = Draft<number | null>;

const commonRates = {
  rps: { unit: requestUnit, perSeconds: 1 },
  rpm: { unit: requestUnit, perSeconds: 60 },
  tpm: { unit: 'tokens', perSeconds: 60 },
} as const;

type CommonRate = keyof typeof commonRates;

const commonRateNames = Object.keys(commonRates) as readonly CommonRate[];

export function rateLimitOf({ unit, rate, perSeconds, burst }: RateLimitDraft): RateLimit {
  return { unit, rate, perSeconds, burst: burst ?? null };
}

/** Of a queue that has only what is said here. */
export function settingsOf(draft: QueueDraft): QueueSettings {
  return changedSettings(defaultQueueSettings, draft);
}

export function changedSettings(settings: QueueSettings, change: QueueChange): QueueSettings {
  const { limits, ageing, ...rest } = change;
  const { paused = settings.paused, pausedUntil = settings.pausedUntil } = rest;
  return {
    ...settings,
    ...rest,
    limits: limits === undefined ? settings.limits : changedLimits(settings.limits, limits),
    ageing: ageing === null ? noAgeing : { ...settings.ageing, ...ageing },
    pausedUntil: paused ? pausedUntil : null,
  };
}

/** What is wrong with what a draft or a change says, besides each limit by itself. */
export function queueChangeFaults(settings: QueueSettings, change: QueueChange): FieldError[] {
  const paused = change.paused ?? settings.paused;
  const [, ...others] = ratesOfOneUnit(change.limits);
  return [
    ...others.map((name) => ({ path: `/limits/${name}`, message: oneLimitOfRequests })),
    ...(change.pausedUntil instanceof Date && !paused
      ? [{ path: '/paused_until', message: 'needs "paused": true' }]
      : []),
  ];
}

const oneLimitOfRequests =
  'is one too many: a queue has one limit of its own for "requests", so name rps or rpm';

function ratesOfOneUnit(limits: Limits<number | null> = []): readonly CommonRate[] {
  if (isList(limits)) return [];
  const named = namesIn(limits).filter((name) => limits[name] !== null);
  return named.filter((name) => commonRates[name].unit === requestUnit);
}

function changedLimits(
  current: readonly QueueLimit[],
  limits: Limits<number | null>,
): readonly QueueLimit[] {
  if (isList(limits)) {
    return limits.map((limit) => ('use' in limit ? { use: limit.use } : rateLimitOf(limit)));
  }
  const names = namesIn(limits);
  const units = new Set<string>(names.map((name) => commonRates[name].unit));
  const kept = current.filter((limit) => 'use' in limit || !units.has(limit.unit));
  const said = names.flatMap((name) => {
    const rate = limits[name] ?? null;
    return rate === null ? [] : [{ ...commonRates[name], rate, burst: null }];
  });
  return [...kept, ...said];
}

function namesIn(limits: CommonRates<number | null>): CommonRate[] {
  return commonRateNames.filter((name) => limits[name] !== undefined);
}

function isList(limits: Limits<number | null>): limits is readonly QueueLimitDraft[] {
  return Array.isArray(limits);
}
