import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AgeSketch } from './age-sketch.js';

describe('AgeSketch', () => {
  it('R-OB1: quantiles are right to 1 %, whatever the ages', () => {
    const ages = fc.array(fc.integer({ min: 1, max: 1e10 }), { minLength: 1, maxLength: 200 });
    fc.assert(
      fc.property(ages, fc.constantFrom(0.5, 0.95, 1), (agesMs, share) => {
        const sketch = new AgeSketch();
        for (const ageMs of agesMs) sketch.add(ageMs, 1);
        const sorted = agesMs.toSorted((a, b) => a - b);
        const exact = (sorted[Math.ceil(share * sorted.length - 1e-9) - 1] ?? 0) / 1000;
        const ratio = (sketch.quantileSeconds(share) ?? 0) / exact;
        expect(ratio).toBeGreaterThan(0.985);
        expect(ratio).toBeLessThan(1.015);
      }),
    );
  });

  it('a task of a sample counts for others', () => {
    const sketch = new AgeSketch();
    sketch.add(1_000, 90);
    sketch.add(60_000, 10);
    expect(sketch.quantileSeconds(0.5)).toBeCloseTo(1, 1);
    expect(sketch.quantileSeconds(0.95)).toBeCloseTo(60, -1);
    expect([sketch.total, sketch.sumSeconds]).toEqual([100, 690]);
  });

  it('adds another one to itself', () => {
    const [one, two] = [new AgeSketch(), new AgeSketch()];
    one.add(1_000, 1);
    two.add(1_000_000, 3);
    one.addAll(two);
    expect([one.total, one.sumSeconds]).toEqual([4, 3_001]);
    expect(one.quantileSeconds(0.5)).toBeCloseTo(1_000, -2);
  });

  it('has no quantile of nothing', () => {
    expect(new AgeSketch().quantileSeconds(0.5)).toBeNull();
  });
});
