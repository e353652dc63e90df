import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { isLate, nextShedding, noShedding, type Shedding } from './overload.js';

const late = 51;
const inTime = 50;

interface Came {
  readonly waitedMs: number;
  readonly atMs: number;
}

function after(all: readonly Came[], from: Shedding = noShedding): boolean {
  return all.reduce((shedding, { waitedMs, atMs }) => nextShedding(shedding, waitedMs, atMs), from)
    .isOn;
}

function every100Ms(waitedMs: number, fromMs: number, toMs: number): Came[] {
  const length = (toMs - fromMs) / 100 + 1;
  return Array.from({ length }, (_, index) => ({ waitedMs, atMs: fromMs + 100 * index }));
}

describe('whether a server sheds submits', () => {
  it('R-AD3: not while a burst lasts', () => {
    expect(after(every100Ms(late, 0, 400))).toBe(false);
    const twice = [
      ...every100Ms(late, 0, 400),
      { waitedMs: inTime, atMs: 450 },
      ...every100Ms(late, 500, 900),
    ];
    expect(after(twice)).toBe(false);
  });

  it('R-AD3: when everybody waited too long for half a second, until nobody did for a second', () => {
    const begun = every100Ms(late, 0, 500);
    expect(after(begun)).toBe(true);
    expect(after([...begun, ...every100Ms(inTime, 600, 1_500)])).toBe(true);
    expect(after([...begun, ...every100Ms(inTime, 600, 1_600)])).toBe(false);
    const once = [
      ...begun,
      ...every100Ms(inTime, 600, 1_500),
      { waitedMs: late, atMs: 1_550 },
      ...every100Ms(inTime, 1_600, 2_500),
    ];
    expect(after(once)).toBe(true);
  });

  it('never while all come in time', () => {
    const comings = fc.array(fc.record({ waitedMs: fc.nat(inTime), passedMs: fc.nat(5_000) }));
    fc.assert(
      fc.property(comings, (all) => {
        let atMs = 0;
        const came = all.map(({ waitedMs, passedMs }) => ({ waitedMs, atMs: (atMs += passedMs) }));
        expect(after(came)).toBe(false);
      }),
    );
  });

  it('counts as late what waited for more than half of what a health check may take', () => {
    expect([isLate(inTime), isLate(late)]).toEqual([false, true]);
  });
});
