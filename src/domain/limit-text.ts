import type { RateLimit } from './queue-settings.js';

const windows: ReadonlyMap<number, string> = new Map([
  [1, 'a second'],
  [60, 'a minute'],
  [3_600, 'an hour'],
  [86_400, 'a day'],
]);

/** 500 requests a minute; 5 jobs in 90 s (bursts of 20). */
export function limitText({ unit, rate, perSeconds, burst }: RateLimit): string {
  const window = windows.get(perSeconds) ?? `in ${countText(perSeconds)} s`;
  const bursts = burst === null ? '' : ` (bursts of ${countText(burst)})`;
  return `${countText(rate)} ${unit} ${window}${bursts}`;
}

/** 30,000; 0.25. Thousandths are enough for people. */
export function countText(count: number): string {
  return count.toLocaleString('en-US', { maximumFractionDigits: 3 });
}
