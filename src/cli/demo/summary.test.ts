import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ListedTask } from '../../protocol/tasks-api.js';
import { describeTally, quantile, tally } from './summary.js';

describe('the summary of the demo', () => {
  it('a quantile is a value that was there, and that share is not above it', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(1_000), { minLength: 1 }),
        fc.double({ min: 0.01, max: 1, noNaN: true }),
        (values, share) => {
          const found = quantile(values, share);
          expect(values).toContain(found);
          const notAbove = values.filter((value) => value <= found).length;
          expect(notAbove / values.length).toBeGreaterThanOrEqual(share);
        },
      ),
    );
    expect(quantile([], 0.5)).toBe(0);
  });

  it('lost is what was accepted and is not found; a dead letter is not lost', () => {
    const found = [
      { taskId: 'a', status: 'completed' },
      { taskId: 'b', status: 'dead_letter' },
      { taskId: 'somebody else', status: 'completed' },
    ] as unknown as ListedTask[];
    const result = tally(new Set(['a', 'b', 'c']), found);
    expect(describeTally(result)).toBe('3 submitted, 1 completed, 1 lost');
  });
});
