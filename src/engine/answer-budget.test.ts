import { describe, expect, it } from 'vitest';
import { bounds } from '../protocol/bounds.js';
import { AnswerBudget } from './answer-budget.js';

const whole = bounds.answerBytes;

describe('AnswerBudget', () => {
  it('R-HA3: reads wait for room, in order, and no more than fit are under way', async () => {
    const budget = new AnswerBudget({ maxBytes: 0 });
    const begun: number[] = [];
    const ends: (() => void)[] = [];
    const read = (n: number, bytes: number) =>
      budget.within(bytes, async () => {
        begun.push(n);
        await new Promise<void>((resolve) => ends.push(resolve));
      });
    const reads = [read(0, whole), read(1, whole), read(2, whole), read(3, 1)];
    await Promise.resolve();
    expect(begun).toEqual([0, 1]);
    expect(budget.room).toBe(0);
    ends[0]?.();
    await reads[0];
    // The small one does not overtake.
    expect(begun).toEqual([0, 1, 2]);
    ends[1]?.();
    await reads[1];
    expect(begun).toEqual([0, 1, 2, 3]);
    for (const end of ends) end();
    await Promise.all(reads);
    expect(budget.room).toBe(2 * whole);
  });

  it('R-HA3: refuses with 503 and a time to come back when no room comes', async () => {
    const budget = new AnswerBudget({ maxBytes: 0, waitMs: 20 });
    const free = budget.hold(2 * whole);
    expect(budget.isClogged).toBe(false);
    const refused = budget.within(1, () => Promise.resolve());
    await expect(refused).rejects.toMatchObject({ code: 'unavailable', retryAfterSeconds: 1 });
    free();
    // Twice is once.
    free();
    expect(budget.room).toBe(2 * whole);
    expect(await budget.within(whole, () => Promise.resolve('read'))).toBe('read');
  });

  it('R-HA3: answers to workers have room of their own', () => {
    const budget = new AnswerBudget({ maxBytes: 0 });
    const free = budget.hold(2 * whole, true);
    expect([budget.isClogged, budget.room]).toEqual([true, 2 * whole]);
    free();
    expect(budget.isClogged).toBe(false);
  });
});
