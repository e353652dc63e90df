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

  it('says when one is open, all are taken, none is', async () => {
    const slots = new Slots(1);
    const heard: string[] = [];
    const full = slots.whenShut().then(() => heard.push('full'));
    slots.take();
    await full;
    const open = slots.whenOpen().then(() => heard.push('open'));
    const idle = slots.whenIdle().then(() => heard.push('idle'));
    slots.giveBack();
    await Promise.all([open, idle]);
    expect(heard).toEqual(['full', 'open', 'idle']);
  });

  it('stops waiting when the signal fires', async () => {
    const slots = new Slots(1);
    const stopping = new AbortController();
    const waiting = slots.whenShut(stopping.signal);
    stopping.abort();
    await expect(waiting).resolves.toBeUndefined();
    await expect(slots.whenShut(stopping.signal)).resolves.toBeUndefined();
  });

  it('R-WO3: what is promised to a poll is open to no other', async () => {
    const slots = new Slots(3);
    slots.promise(2);
    expect([slots.free, slots.open]).toEqual([3, 1]);
    expect(() => slots.promise(2)).toThrow('more slots than are open');
    slots.promise(1);
    const open = slots.whenOpen();
    slots.redeem(2);
    slots.take();
    await open;
    expect([slots.free, slots.open]).toEqual([2, 1]);
  });

  it('R-RE9: one that is given back later is open to nobody before, and idle at once', async () => {
    const slots = new Slots(1);
    let answer: () => void = () => undefined;
    slots.take();
    slots.giveBackAfter(new Promise<void>((resolve) => (answer = resolve)));
    await Promise.all([slots.whenIdle(), slots.whenShut()]);
    expect([slots.used, slots.free, slots.open]).toEqual([0, 0, 0]);
    expect(() => slots.promise(1)).toThrow('more slots than are open');
    const open = slots.whenOpen();
    answer();
    await open;
    expect([slots.used, slots.free, slots.open]).toEqual([0, 1, 1]);
  });

  it('is shut also while something else is in the way of asking', async () => {
    const slots = new Slots(2);
    const shut = slots.whenShut();
    slots.heldUp = true;
    await shut;
  });

  it('knows since when nothing runs', () => {
    const slots = new Slots(1);
    const before = slots.idleSince;
    slots.take();
    expect(slots.idleSince).toBeNull();
    slots.giveBack();
    expect(slots.idleSince).toBeGreaterThanOrEqual(before ?? Infinity);
  });
});
