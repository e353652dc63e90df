import { countText, limitText } from '../domain/limit-text.js';
import type { QueueLimit } from '../domain/queue-settings.js';
import type { LimitView, QueueView } from '../protocol/queues-api.js';
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

export function nextTokenText(nextTokenInMs: number): string {
  return nextTokenInMs === 0 ? 'now' : `in ${readableSeconds(nextTokenInMs / 1000)}`;
}

/** paused, paused until 2030-01-31T12:00:00.000Z, why its circuit is not closed, or nothing. */
export function pauseText({ settings: { paused, pausedUntil }, live }: QueueView): string {
  if (paused) return `paused${untilText(pausedUntil)}`;
  if (live.circuit === 'closed') return '';
  if (live.pausedWhy === null) return 'recovering';
  return `stopped${untilText(live.pausedUntil)}: ${live.pausedWhy}`;
}

/** Nothing while the settings are in force. */
export function inForceText({ inForce }: Pick<QueueView, 'inForce'>): string {
  return inForce ? '' : ' (not in force yet: Redis could not be told; until then nothing starts)';
}

function untilText(instant: Date | null): string {
  return instant === null ? '' : ` until ${instant.toISOString()}`;
}
