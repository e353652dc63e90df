import { countText, limitText } from '../domain/limit-text.js';
import type { QueueLimit } from '../domain/queue-settings.js';
import type { LimitUse, LimitView, QueueView } from '../protocol/queues-api.js';
import { readableSeconds } from './readable.js';

/** gpt-4o: 500 requests a minute, 30,000 tokens a minute, 20 at once */
export function queueLimitsText(
  { name, settings }: QueueView,
  shared: readonly LimitView[],
): string {
  const { limits, maxConcurrency } = settings;
  const told = [
    ...limits.map((limit) => describe(limit, shared)),
    ...(maxConcurrency === null ? [] : [`${countText(maxConcurrency)} at once`]),
  ];
  return `${name}: ${told.length === 0 ? 'no limits' : told.join(', ')}`;
}

function describe(limit: QueueLimit, shared: readonly LimitView[]): string {
  if (!('use' in limit)) return limitText(limit);
  const found = shared.find(({ name }) => name === limit.use);
  return found === undefined ? limit.use : `${limitText(found)} shared as ${limit.use}`;
}

/** 2.5 requests, 12,000 tokens */
export function tokensText(tokens: Readonly<Record<string, number>>): string {
  return Object.entries(tokens)
    .map(([unit, count]) => `${countText(count)} ${unit}`)
    .join(', ');
}

/** 412/500 requests, 12,000/30,000 tokens */
export function usageText(usage: readonly LimitUse[]): string {
  return usage
    .map(({ used, allowed, unit }) => `${countText(used)}/${countText(allowed)} ${unit}`)
    .join(', ');
}

const windows: ReadonlyMap<number, string> = new Map([
  [1, 'second'],
  [60, 'minute'],
  [3_600, 'hour'],
  [86_400, 'day'],
]);

/** 412 of 500 used in the last minute, next free in 1.2 s; soon after a start: 3 of 500 used in 7 s so far */
export function limitUseText(use: LimitUse): string {
  const { used, allowed, perSeconds, countedSeconds, nextInMs } = use;
  const window =
    countedSeconds < perSeconds
      ? `in ${readableSeconds(countedSeconds)} so far`
      : `in the last ${windows.get(perSeconds) ?? readableSeconds(perSeconds)}`;
  const next = nextInMs === 0 ? 'now' : `in ${readableSeconds(nextInMs / 1000)}`;
  return `${countText(used)} of ${countText(allowed)} used ${window}, next free ${next}`;
}

/** 12 of 20; without a limit the number alone. */
export function runningText({
  settings: { maxConcurrency },
  live: { running },
}: QueueView): string {
  const of = maxConcurrency === null ? '' : ` of ${countText(maxConcurrency)}`;
  return `${countText(running)}${of}`;
}

const shares: ReadonlyMap<number, string> = new Map([
  [0.25, 'a quarter'],
  [0.5, 'half'],
]);

/** paused, paused until 2030-01-31T12:00:00.000Z, why its circuit is not closed, or nothing. */
export function pauseText({ settings: { paused, pausedUntil }, live }: QueueView): string {
  if (paused) return `paused${untilText(pausedUntil)}`;
  if (live.circuit === 'closed') return '';
  if (live.pausedWhy === null) {
    const share = shares.get(live.recoveryFactor) ?? `${countText(live.recoveryFactor * 100)} %`;
    return `recovering: ${share} of its limits`;
  }
  return `stopped${untilText(live.pausedUntil)}: ${live.pausedWhy}`;
}

/** Nothing while the settings are in force. */
export function inForceText({ inForce }: Pick<QueueView, 'inForce'>): string {
  return inForce ? '' : ' (not in force yet: Redis could not be told; until then nothing starts)';
}

function untilText(instant: Date | null): string {
  return instant === null ? '' : ` until ${instant.toISOString()}`;
}
