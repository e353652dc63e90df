import { describe, expect, it } from 'vitest';
import { DrainRate } from './drain-rate.js';

describe('R-AD3: how fast places get free', () => {
  it('is not known at first, nor within the first second', () => {
    const drain = new DrainRate();
    expect(drain.perSecond('', 100, 0)).toBeNull();
    expect(drain.perSecond('', 150, 500)).toBeNull();
  });

  it('is what ended since then, by whichever server', () => {
    const drain = new DrainRate();
    drain.perSecond('', 100, 0);
    expect(drain.perSecond('', 120, 2_000)).toBe(10);
    expect(drain.perSecond('', 400, 10_000)).toBe(30);
  });

  it('forgets what was more than a minute ago', () => {
    const drain = new DrainRate();
    for (let second = 0; second <= 60; second += 1) drain.perSecond('', 0, second * 1000);
    for (let second = 61; second <= 130; second += 1) {
      drain.perSecond('', (second - 60) * 5, second * 1000);
    }
    expect(drain.perSecond('', 355, 131_000)).toBeCloseTo(5, 5);
  });

  it('is not known when nothing ended: a worker may come at any moment', () => {
    const drain = new DrainRate();
    drain.perSecond('', 100, 0);
    expect(drain.perSecond('', 100, 30_000)).toBeNull();
  });

  it('is of each scope', () => {
    const drain = new DrainRate();
    drain.perSecond('one', 0, 0);
    drain.perSecond('other', 0, 0);
    expect(drain.perSecond('one', 10, 1_000)).toBe(10);
    expect(drain.perSecond('other', 20, 1_000)).toBe(20);
  });
});
