import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Slots } from './slots.js';

describe('Slots', () => {
  it('R-WO1: never more in use than there are, whatever the order', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.array(fc.boolean()), (size, steps) => {
        const slots = new Slots(size);
        for (const isTake of steps) {
          if (isTake && slots.free > 0) slots.take();
          if (!isTake && slots.used > 0) slots.giveBack();
          expect(slots.free + slots.used).toBe(size);
          expect(slots.used).toBeLessThanOrEqual(size);
        }
      }),
    );
  });

  it('refuses a size that is not a whole number of at least 1', () => {
    for (const size of [0, -1, 1.5, NaN]) expect(() => new Slots(size)).toThrow(RangeError);
  });

  it('says when one is free, all are taken, none is', async () => {
    const slots = new Slots(1);
    const heard: string[] = [];
    const full = slots.whenFull().then(() => heard.push('full'));
    slots.take();
    await full;
    const free = slots.whenFree().then(() => heard.push('free'));
    const idle = slots.whenIdle().then(() => heard.push('idle'));
    slots.giveBack();
    await Promise.all([free, idle]);
    expect(heard).toEqual(['full', 'free', 'idle']);
  });

  it('stops waiting when the signal fires', async () => {
    const slots = new Slots(1);
    const stopping = new AbortController();
    const waiting = slots.whenFull(stopping.signal);
    stopping.abort();
    await expect(waiting).resolves.toBeUndefined();
    await expect(slots.whenFull(stopping.signal)).resolves.toBeUndefined();
  });
});
