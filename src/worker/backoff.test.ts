import fc from 'fast-check';
import { expect, it } from 'vitest';
import { SluiceError } from '../domain/errors.js';
import { backoffMs, isAway, retryDelayMs } from './backoff.js';

const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

it('a delay grows with the failures, stays under 5 s and spreads over half of it', () => {
  fc.assert(
    fc.property(fc.nat(1_000), random, (failures, share) => {
      const delayMs = backoffMs(failures, share);
      const full = Math.min(100 * 2 ** failures, 5_000);
      expect(delayMs).toBeGreaterThanOrEqual(full / 2);
      expect(delayMs).toBeLessThanOrEqual(full);
    }),
  );
});

it('what a server wishes is obeyed, within reason', () => {
  const wishes = (retryAfterSeconds: number) =>
    new SluiceError('refused', '', { retryAfterSeconds });
  expect(retryDelayMs(wishes(2), 0)).toBe(2_000);
  expect(retryDelayMs(wishes(3_600), 0)).toBe(5_000);
});

it('away: outages, refusals for now, and what is no answer of ours at all', () => {
  expect(isAway(new SluiceError('unavailable', ''))).toBe(true);
  expect(isAway(new SluiceError('refused', ''))).toBe(true);
  expect(isAway(new TypeError('fetch failed'))).toBe(true);
  expect(isAway(new SluiceError('invalid_request', ''))).toBe(false);
  expect(isAway(new SluiceError('unauthorized', ''))).toBe(false);
});
