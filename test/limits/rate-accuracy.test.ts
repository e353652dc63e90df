import { describe, expect, it } from 'vitest';
import { MemoryReadyQueue } from '../../src/ready/memory/memory-ready-queue.js';
import { ManualClock } from '../../src/runtime/clock.js';
import { openTestReadyQueues } from '../support/redis-ready-queues.js';
import { measureRate, type RateMeasured } from './rate-accuracy.js';

/** The same numbers in every run. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

const cases = [
  { rate: 20, minutes: 10, serverCounts: [1, 3] },
  { rate: 600, minutes: 10, serverCounts: [3] },
  { rate: 6_000, minutes: 1, serverCounts: [1, 3] },
] as const;

function expectAccurate({ mostInAMinute, usedShare }: RateMeasured, rate: number): void {
  expect(mostInAMinute).toBeLessThanOrEqual(rate);
  expect(usedShare).toBeGreaterThanOrEqual(0.995);
}

describe('R-CH4: never more than R grants in any sliding window, and ≥ 99.5 % of R used', () => {
  for (const { rate, minutes, serverCounts } of cases) {
    const title = `${String(rate)} a minute for ${String(minutes)} minutes`;

    it(`${title}, in memory`, async () => {
      const clock = new ManualClock();
      const queues = [new MemoryReadyQueue({ clock })];
      const measured = await measureRate({ clock, queues, rate, minutes, random: seeded(1) });
      expectAccurate(measured, rate);
    });

    for (const servers of serverCounts) {
      it(`${title}, in Redis, ${String(servers)} servers`, async () => {
        const clock = new ManualClock();
        const ready = await openTestReadyQueues(servers, clock);
        const { queues } = ready;
        try {
          const measured = await measureRate({ clock, queues, rate, minutes, random: seeded(2) });
          expectAccurate(measured, rate);
        } finally {
          await ready.close();
        }
      });
    }
  }
});

describe('R-CH4: what is lost goes on from its checkpoint, and no window is exceeded', () => {
  for (const { rate, minutes } of cases) {
    const title = `${String(rate)} a minute for ${String(minutes)} minutes`;

    it(`${title}, the memory lost in the middle`, async () => {
      const clock = new ManualClock();
      const queue = new MemoryReadyQueue({ clock });
      const lose = async () => {
        await queue.beginRestore();
      };
      const run = { clock, queues: [queue], rate, minutes, random: seeded(3) };
      expectAccurate(await measureRate({ ...run, lose }), rate);
    });

    it(`${title}, Redis flushed in the middle`, async () => {
      const clock = new ManualClock();
      const ready = await openTestReadyQueues(3, clock);
      const { queues } = ready;
      try {
        const run = { clock, queues, rate, minutes, random: seeded(4) };
        expectAccurate(await measureRate({ ...run, lose: () => ready.flush() }), rate);
      } finally {
        await ready.close();
      }
    });
  }
});
