import fc from 'fast-check';
import { expect, it } from 'vitest';
import { claimSize, maxClaim } from './claim-size.js';

it('R-WO3: a claim is never larger than the free slots or a batch', () => {
  fc.assert(
    fc.property(fc.nat(5_000), (freeSlots) => {
      const size = claimSize(freeSlots);
      expect(size).toBeLessThanOrEqual(Math.min(freeSlots, maxClaim));
    }),
  );
});

it('R-WO3: a claim is at least 1 while a slot is free, and 0 when none is', () => {
  expect(claimSize(0)).toBe(0);
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5_000 }), (freeSlots) => {
      expect(claimSize(freeSlots)).toBeGreaterThanOrEqual(1);
    }),
  );
});
