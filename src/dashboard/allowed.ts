import { limitText } from '../domain/limit-text.js';
import type { LimitUseWire } from '../protocol/queues-schema.js';

export interface Allowed {
  readonly label: string;
  readonly perMinute: number;
  readonly isTightest: boolean;
}

/** A limit so many times as wide as the tightest would press all else to the ground. */
const farAway = 10;

export interface AllowedLines {
  readonly drawn: readonly Allowed[];
  /** Too far away to be drawn. */
  readonly wider: readonly Allowed[];
}

/** What the limits of a unit allow a minute, the tightest first. */
export function allowedOf(usage: readonly LimitUseWire[], unit: string): AllowedLines {
  const ofUnit = usage.filter((use) => use.unit === unit);
  const isOnly = ofUnit.length === 1;
  const all = ofUnit
    .map((use) => ({
      label: isOnly ? 'allowed' : labelOf(use),
      perMinute: (use.allowed * 60) / use.per_seconds,
    }))
    .toSorted((a, b) => a.perMinute - b.perMinute)
    .map((one, place) => ({ ...one, isTightest: place === 0 }));
  const least = all[0]?.perMinute ?? 0;
  const isNear = ({ perMinute }: Allowed) => perMinute <= least * farAway;
  return { drawn: all.filter(isNear), wider: all.filter((one) => !isNear(one)) };
}

function labelOf({ limit, unit, allowed, per_seconds: perSeconds }: LimitUseWire): string {
  const text = limitText({ unit, rate: allowed, perSeconds, burst: null });
  return limit === null ? `allowed: ${text}` : `allowed by ${limit}: ${text}`;
}
