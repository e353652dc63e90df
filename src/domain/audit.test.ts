import { describe, expect, it } from 'vitest';

import { boundedDetails, changesBetween } from './audit.js';

describe('R-OB12: what changed', () => {
  it('is only what differs', () => {
    const before = { rate: 1, limits: [{ unit: 'requests' }], paused: false };
    const after = { rate: 2, limits: [{ unit: 'requests' }], paused: false, extra: 'x' };
    expect(changesBetween(before, after)).toEqual({
      rate: { from: 1, to: 2 },
      extra: { from: null, to: 'x' },
    });
    expect(changesBetween(before, before)).toEqual({});
    expect(changesBetween(null, { rate: 1 })).toEqual({ rate: { from: null, to: 1 } });
  });

  it('is bounded in size', () => {
    const long = Array.from({ length: 10_000 }, (_, n) => n);
    const size = (value: unknown) => JSON.stringify(value).length;
    expect(size(changesBetween({ long }, { long: 'x'.repeat(10_000) }))).toBeLessThan(2_500);
    expect(size(boundedDetails({ long, short: 1 }))).toBeLessThan(2_500);
    expect(boundedDetails({ short: 1 })).toEqual({ short: 1 });
  });
});
