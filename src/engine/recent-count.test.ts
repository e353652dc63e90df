import fc from 'fast-check';
import { expect, it } from 'vitest';
import { RecentCount } from './recent-count.js';

it('counts what happened in the window, to the nearest bucket', () => {
  const step = fc.record({
    waitMs: fc.integer({ min: 0, max: 3_000 }),
    amount: fc.integer({ min: 1, max: 5 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 50 }), (steps) => {
      const count = new RecentCount(100, 10);
      const events: { bucket: number; amount: number }[] = [];
      let nowMs = 1_000_000;
      for (const { waitMs, amount } of steps) {
        nowMs += waitMs;
        count.add(nowMs, amount);
        events.push({ bucket: Math.floor(nowMs / 100), amount });
      }
      const current = Math.floor(nowMs / 100);
      const expected = events
        .filter(({ bucket }) => bucket > current - 10)
        .reduce((sum, { amount }) => sum + amount, 0);
      expect(count.total(nowMs)).toBe(expected);
      expect(count.total(nowMs + 1_000)).toBe(0);
    }),
  );
});
