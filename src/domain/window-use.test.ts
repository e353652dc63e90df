import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bucketShape } from './token-bucket.js';
import { WindowUse } from './window-use.js';

const shapeOf = (perSeconds: number) =>
  bucketShape({ unit: 'tokens', rate: 100, perSeconds, burst: null });

describe('WindowUse', () => {
  it('knows what was granted in the window up to now, to a tenth of the window', () => {
    const grant = fc.record({ afterMs: fc.nat(5_000), count: fc.nat(100) });
    fc.assert(
      fc.property(fc.nat(1e6), fc.array(grant, { maxLength: 50 }), (beganMs, grants) => {
        const windowMs = 10_000;
        const use = new WindowUse(shapeOf(10), beganMs);
        const granted: { readonly atMs: number; readonly count: number }[] = [];
        let nowMs = beganMs;
        for (const { afterMs, count } of grants) {
          nowMs += afterMs;
          use.add(count, nowMs);
          granted.push({ atMs: nowMs, count });
        }
        const since = (ageMs: number) =>
          granted
            .filter(({ atMs }) => atMs > nowMs - ageMs)
            .reduce((sum, { count }) => sum + count, 0);
        expect(use.usedAt(nowMs)).toBeGreaterThanOrEqual(since(windowMs - 1_000));
        expect(use.usedAt(nowMs)).toBeLessThanOrEqual(since(windowMs + 1_000));
      }),
    );
  });

  it('says how much of the window it has counted', () => {
    const use = new WindowUse(shapeOf(60), 1_000);
    expect(use.countedMsAt(21_000)).toBe(20_000);
    expect(use.countedMsAt(100_000)).toBe(60_000);
  });

  it('forgets all of it after a window', () => {
    const use = new WindowUse(shapeOf(60), 0);
    use.add(5, 0);
    expect(use.usedAt(59_999)).toBe(5);
    expect(use.usedAt(66_000)).toBe(0);
    expect(use.usedAt(1e9)).toBe(0);
  });

  it('in a longer window all of it counts on, in a shorter one its share', () => {
    const use = new WindowUse(shapeOf(60), 0);
    use.add(40, 30_000);
    use.change(shapeOf(240), 90_000);
    expect([use.usedAt(90_000), use.countedMsAt(90_000)]).toEqual([0, 60_000]);
    use.add(40, 90_000);
    use.change(shapeOf(60), 100_000);
    expect([use.usedAt(100_000), use.countedMsAt(100_000)]).toEqual([10, 60_000]);
  });

  it('a clock that is set back changes nothing', () => {
    const use = new WindowUse(shapeOf(1), 10_000);
    use.add(5, 10_000);
    use.add(2, 9_000);
    expect(use.usedAt(10_050)).toBe(7);
  });
});
