import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { nextShedding, noShedding, type Pressure, type Shedding } from './overload.js';

const late: Pressure = { lagMs: 80, submitsUnderWay: 1_000 };
const calm: Pressure = { lagMs: 5, submitsUnderWay: 1_000 };

function after(turns: number, pressure: Pressure, from: Shedding = noShedding): Shedding {
  let shedding = from;
  for (let turn = 0; turn < turns; turn += 1) shedding = nextShedding(shedding, pressure, 100);
  return shedding;
}

describe('which share of the submits a server sheds', () => {
  it('R-AD3: is none while a burst lasts', () => {
    expect(after(4, late).share).toBe(0);
    expect(after(4, late, after(1, calm, after(4, late))).share).toBe(0);
  });

  it('grows when the loop stays late, and shrinks to none when it is no longer', () => {
    const pressed = after(6, late);
    expect(pressed.share).toBeCloseTo(2 / 3);
    expect(after(1, late, after(1, calm, pressed)).share).toBeGreaterThan(pressed.share);
    expect(after(100, calm, pressed).share).toBe(0);
  });

  it('stays when most are shed and the loop is late all the same', () => {
    const pressed = after(20, late);
    expect(after(10, { ...late, submitsUnderWay: 10 }, pressed).share).toBeGreaterThan(0.9);
    expect(after(600, { ...late, submitsUnderWay: 10 }, pressed).share).toBe(0);
  });

  it('is none however late the loop is with few submits under way: somebody else has the machine', () => {
    expect(after(100, { lagMs: 60_000, submitsUnderWay: 499 }).share).toBe(0);
  });

  it('always lets some in', () => {
    const pressures = fc.array(
      fc.record({
        lagMs: fc.nat(10_000),
        submitsUnderWay: fc.nat(10_000),
        passedMs: fc.nat(5_000),
      }),
    );
    fc.assert(
      fc.property(pressures, (turns) => {
        let shedding = noShedding;
        for (const { passedMs, ...pressure } of turns) {
          shedding = nextShedding(shedding, pressure, passedMs);
          expect(shedding.share).toBeGreaterThanOrEqual(0);
          expect(shedding.share).toBeLessThan(1);
        }
      }),
    );
  });
});
