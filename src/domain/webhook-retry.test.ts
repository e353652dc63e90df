import fc from 'fast-check';
import { expect, it } from 'vitest';
import { retryWebhookMs } from './webhook-retry.js';

it('R-WH1: waits longer each time, up to a minute, and gives up after three days', () => {
  expect([1, 2, 3, 6, 100].map((tries) => retryWebhookMs(tries, 0, 1))).toEqual([
    2_000, 4_000, 8_000, 60_000, 60_000,
  ]);
  expect(retryWebhookMs(5_000, 3 * 86_400_000, 0)).toBe(45_000);
  expect(retryWebhookMs(1, 3 * 86_400_000 + 1, 0)).toBeNull();
});

it('never waits less than a second or more than a minute', () => {
  const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1e6 }), random, (tries, drawn) => {
      const delayMs = retryWebhookMs(tries, 0, drawn);
      return delayMs !== null && delayMs >= 1_500 && delayMs <= 60_000;
    }),
  );
});
