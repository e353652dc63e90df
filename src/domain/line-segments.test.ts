import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AgeSketch } from './age-sketch.js';
import { addAges, urgencyOf, type LineSegment } from './line-segments.js';
import { defaultAgeing, effectivePriority, noAgeing, priorities } from './priority.js';

const minuteMs = 60_000;
const nowMs = 1_000 * minuteMs;

describe('urgencyOf', () => {
  it('R-OB1: counts as each task would be, where they came at even distances', () => {
    const segment = fc.record({
      fromMs: fc.integer({ min: nowMs - 60 * minuteMs, max: nowMs - 20 * minuteMs }),
      gapMs: fc.integer({ min: 0, max: minuteMs }),
      count: fc.integer({ min: 1, max: 20 }),
    });
    fc.assert(
      fc.property(segment, fc.constantFrom(...priorities), ({ fromMs, gapMs, count }, priority) => {
        const times = Array.from({ length: count }, (_, n) => fromMs + n * gapMs);
        const found = urgencyOf(
          [{ fromMs, toMs: times.at(-1) ?? fromMs, count }],
          priority,
          defaultAgeing,
          nowMs,
        );
        for (const level of priorities) {
          const those = times.filter(
            (atMs) => effectivePriority(priority, nowMs - atMs, defaultAgeing) === level,
          );
          expect(found[level].count).toBe(those.length);
          expect(found[level].eligibleAtMs ?? -1).toBeCloseTo(those[0] ?? -1, 3);
        }
      }),
    );
  });

  it('without ageing everything is as urgent as it was submitted', () => {
    const old: LineSegment = { fromMs: 0, toMs: 1, count: 7 };
    expect(urgencyOf([old, old], 'low', noAgeing, nowMs)).toEqual({
      high: { count: 0, eligibleAtMs: null },
      medium: { count: 0, eligibleAtMs: null },
      low: { count: 14, eligibleAtMs: 0 },
    });
  });
});

describe('addAges', () => {
  it('spreads a segment from its oldest to its youngest', () => {
    const sketch = new AgeSketch();
    const segment = { fromMs: nowMs - 100_000, toMs: nowMs, count: 1_000 };
    addAges([segment], nowMs, () => sketch);
    expect(sketch.total).toBe(1_000);
    expect(sketch.sumSeconds).toBe(50_000);
    expect(sketch.quantileSeconds(1)).toBeGreaterThan(80);
  });
});
