import { describe, expect, it } from 'vitest';
import { broughtUp, type Look } from './surveyed.js';

const look: Look = {
  queue: 'q',
  heldBackBy: null,
  waiting: {
    high: { count: 2, oldestAgeMs: 40_000 },
    medium: { count: 1, oldestAgeMs: 20_000 },
    low: { count: 3, oldestAgeMs: 5_000 },
  },
  ages: [{ priority: 'high', ageMs: 40_000, count: 2 }],
};

const counts = ({ waiting: { high, medium, low } }: Look) => [high.count, medium.count, low.count];

describe('an earlier look at a queue', () => {
  it('R-OB1: is older by what has passed', () => {
    const now = broughtUp(look, { high: 0, medium: 0, low: 6 }, 1_000);
    expect(counts(now)).toEqual([2, 1, 3]);
    expect(now.waiting.low.oldestAgeMs).toBe(6_000);
    expect(now.ages).toEqual([{ priority: 'high', ageMs: 41_000, count: 2 }]);
  });

  it('R-OB1: loses the most urgent first', () => {
    const now = broughtUp(look, { high: 0, medium: 0, low: 3 }, 0);
    expect(counts(now)).toEqual([0, 0, 3]);
    expect(now.waiting.high.oldestAgeMs).toBeNull();
  });

  it('R-OB1: has what came since as it was submitted', () => {
    expect(counts(broughtUp(look, { high: 0, medium: 4, low: 6 }, 0))).toEqual([2, 4, 4]);
  });
});
