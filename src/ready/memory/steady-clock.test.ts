import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../runtime/clock.js';
import { SteadyClock } from './steady-clock.js';

describe('SteadyClock', () => {
  it('never goes back, and passes on every step forward', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -5000, max: 5000 })), (steps) => {
        const source = new ManualClock(1_000_000);
        const clock = new SteadyClock(source);
        let nowMs = clock.nowMs();
        for (const step of steps) {
          source.advance(step);
          expect(clock.nowMs()).toBe(nowMs + Math.max(0, step));
          nowMs = clock.nowMs();
        }
      }),
    );
  });

  it('begins at zero, so that its instants are small numbers', () => {
    expect(new SteadyClock(new ManualClock()).nowMs()).toBe(0);
  });

  it('counts whole milliseconds', () => {
    const source = new ManualClock(10.75);
    const clock = new SteadyClock(source);
    source.advance(3.5);
    expect(clock.nowMs()).toBe(4);
  });
});
