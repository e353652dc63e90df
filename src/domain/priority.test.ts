import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  defaultAgeing,
  effectivePriority,
  nextPromotionAgeMs,
  noAgeing,
  priorities,
  priorityOf,
  rankOf,
} from './priority.js';

const threshold = fc.option(fc.nat(10_000));
const ageing = fc.record({
  lowToMediumMs: threshold,
  lowToHighMs: threshold,
  mediumToHighMs: threshold,
});
const priority = fc.constantFrom(...priorities);
const ageMs = fc.nat(12_000);

describe('priorities', () => {
  it('R-CH1: are ranked from the most urgent', () => {
    expect(priorities.map(rankOf)).toEqual([0, 1, 2]);
    expect([0, 1, 2].map(priorityOf)).toEqual(['high', 'medium', 'low']);
  });

  it('a rank that no priority has is a bug, not a default', () => {
    for (const rank of [-1, 3, 0.5, Number.NaN]) expect(() => priorityOf(rank)).toThrow(RangeError);
  });
});

describe('effectivePriority', () => {
  const minuteMs = 60_000;

  it('R-CH2: by default low counts as medium at 10 min and high at 30, medium as high at 20', () => {
    const at = (from: 'low' | 'medium', minutes: number, beforeMs = 0) =>
      effectivePriority(from, minutes * minuteMs - beforeMs, defaultAgeing);
    expect([at('low', 10, 1), at('low', 10)]).toEqual(['low', 'medium']);
    expect([at('low', 30, 1), at('low', 30)]).toEqual(['medium', 'high']);
    expect([at('medium', 20, 1), at('medium', 20)]).toEqual(['medium', 'high']);
  });

  it('R-CH2: is never less urgent than submitted, nor at a greater age', () => {
    fc.assert(
      fc.property(ageing, priority, ageMs, ageMs, (rules, submitted, oneAge, otherAge) => {
        const younger = Math.min(oneAge, otherAge);
        const older = Math.max(oneAge, otherAge);
        const rankAt = (age: number) => rankOf(effectivePriority(submitted, age, rules));
        expect(rankAt(younger)).toBeLessThanOrEqual(rankOf(submitted));
        expect(rankAt(older)).toBeLessThanOrEqual(rankAt(younger));
      }),
    );
  });

  it('R-CH2: never changes when ageing is off', () => {
    fc.assert(
      fc.property(priority, fc.nat(), (submitted, age) => {
        expect(effectivePriority(submitted, age, noAgeing)).toBe(submitted);
        expect(nextPromotionAgeMs(submitted, age, noAgeing)).toBeNull();
      }),
    );
  });
});

describe('nextPromotionAgeMs', () => {
  it('R-CH2: is the first later age at which the effective priority differs', () => {
    fc.assert(
      fc.property(ageing, priority, ageMs, (rules, submitted, age) => {
        const now = effectivePriority(submitted, age, rules);
        const next = nextPromotionAgeMs(submitted, age, rules);
        if (next === null) {
          expect(effectivePriority(submitted, 1e9, rules)).toBe(now);
          return;
        }
        expect(next).toBeGreaterThan(age);
        expect(effectivePriority(submitted, next - 1, rules)).toBe(now);
        expect(effectivePriority(submitted, next, rules)).not.toBe(now);
      }),
    );
  });

  it('R-CH2: skips a step that the next one has overtaken', () => {
    const rules = { lowToMediumMs: 500, lowToHighMs: 100, mediumToHighMs: null };
    expect(nextPromotionAgeMs('low', 0, rules)).toBe(100);
    expect(effectivePriority('low', 100, rules)).toBe('high');
    expect(nextPromotionAgeMs('low', 100, rules)).toBeNull();
  });
});
