import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../runtime/clock.js';
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

  it('knows when an instant of the clock beneath comes, also after that was set back', () => {
    const source = new ManualClock();
    const clock = new SteadyClock(source);
    clock.nowMs();
    source.advance(-60_000);
    const instant = new Date(source.nowMs() + 1000);
    expect(clock.instantMs(instant) - clock.nowMs()).toBe(1000);
  });

  it('counts whole milliseconds', () => {
    const source = new ManualClock(10.75);
    expect(new SteadyClock(source).nowMs()).toBe(10);
  });
});
