import { describe, expect, it } from 'vitest';

import type { WorkerId } from '../domain/ids.js';
import { Bench } from './bench.js';
import type { EngineContext } from './context.js';

const workerId = '01a1e33b-11b8-71a9-8487-57eb16c9a923' as WorkerId;
const benchMs = 60_000;
const untilMs = 1_000_000;

describe('what a benched worker may get', () => {
  it('R-RE11: who gets nothing knows when it may, though its time is over between two looks', () => {
    for (let beganMs = untilMs - 3; beganMs <= untilMs; beganMs++) {
      const bench = benchedAt(beganMs);
      const { count, waitMs } = bench.ration(workerId, 10);
      if (count === 0) expect(waitMs).toBeLessThanOrEqual(untilMs - beganMs);
      else expect(count).toBe(3);
    }
  });
});

/** By a clock that is a millisecond further at every look. */
function benchedAt(beganMs: number): Bench {
  let nowMs = beganMs;
  const clock = { nowMs: () => nowMs++ };
  const context = { clock, settings: { benchMs } } as unknown as EngineContext;
  const bench = new Bench(context, () => undefined);
  bench.set(workerId, untilMs);
  return bench;
}
