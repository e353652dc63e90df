import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  effectivePriority,
  nextPromotionAgeMs,
  priorities,
  rankOf,
} from '../../domain/priority.js';
import { AgeingTable } from './ageing-table.js';

const threshold = fc.option(fc.nat(100));
const ageing = fc.record({
  lowToMediumMs: threshold,
  lowToHighMs: threshold,
  mediumToHighMs: threshold,
});

describe('AgeingTable', () => {
  it('R-CH2: agrees with the effective priority of the domain', () => {
    fc.assert(
      fc.property(ageing, fc.constantFrom(...priorities), fc.nat(120), (rules, priority, ageMs) => {
        const level = new AgeingTable(rules).levelOf(rankOf(priority), ageMs);
        expect(priorities[level]).toBe(effectivePriority(priority, ageMs, rules));
      }),
    );
  });

  it('R-CH2: the age for the next better level is the next promotion of the domain', () => {
    fc.assert(
      fc.property(ageing, fc.constantFrom(...priorities), fc.nat(120), (rules, priority, ageMs) => {
        const table = new AgeingTable(rules);
        const rank = rankOf(priority);
        const level = table.levelOf(rank, ageMs);
        if (level === 0) return;
        const nextAge = table.ageFor(rank, level === 2 ? 1 : 0);
        const next = nextPromotionAgeMs(priority, ageMs, rules);
        expect(nextAge).toBe(next ?? Number.POSITIVE_INFINITY);
      }),
    );
  });

  it('R-CH2: a part of a millisecond counts as a whole one', () => {
    const table = new AgeingTable({ lowToMediumMs: null, lowToHighMs: 1.5, mediumToHighMs: null });
    expect(table.levelOf(2, 1)).toBe(2);
    expect(table.levelOf(2, 2)).toBe(0);
  });
});
