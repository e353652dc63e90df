import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { anyName, choosePatterns, maxPatterns, type PatternKey } from './dead-letter-patterns.js';

const idOf = (pattern: PatternKey): string => JSON.stringify(pattern);
const none = { withMessage: 0, withoutMessage: 0 };
const full = { withMessage: maxPatterns, withoutMessage: 0 };

describe('R-OB10: patterns', () => {
  it('are their own while there is room, and then one for each type and code', () => {
    const wanted = { taskType: 't', code: 'C', message: 'm' };
    const choose = (isKnown: boolean, counts: typeof none) =>
      choosePatterns([wanted], () => isKnown, counts, idOf);
    expect(choose(false, none)).toEqual([wanted]);
    expect(choose(true, full)).toEqual([wanted]);
    expect(choose(false, full)).toEqual([{ ...wanted, message: null }]);
    expect(choose(false, { withMessage: maxPatterns, withoutMessage: maxPatterns })).toEqual([
      { taskType: anyName, code: anyName, message: null },
    ]);
  });

  it('are bounded, whatever types, codes and messages people invent', () => {
    const wanted = fc.record({
      taskType: fc.string({ maxLength: 2 }),
      code: fc.string({ maxLength: 2 }),
      message: fc.string({ maxLength: 3 }),
    });
    fc.assert(
      fc.property(fc.array(wanted, { maxLength: 300 }), fc.nat(200), fc.nat(200), (keys, a, b) => {
        const counts = { withMessage: maxPatterns - a, withoutMessage: maxPatterns - b };
        const chosen = choosePatterns(keys, () => false, counts, idOf);
        const distinct = [...new Map(chosen.map((key) => [idOf(key), key])).values()];
        expect(distinct.filter(({ message }) => message !== null).length).toBeLessThanOrEqual(a);
        const without = distinct.filter(({ message }) => message === null);
        expect(without.length).toBeLessThanOrEqual(Math.max(1, b));
        chosen.forEach((key, n) => {
          if (key.taskType !== anyName) expect(key.taskType).toBe(keys[n]?.taskType);
        });
      }),
    );
  });
});
