import { describe, expect, it } from 'vitest';
import { countCrash, restartDelayMs } from './restart-delay.js';

describe('R-WO10: when a crashed process is started again', () => {
  it('waits twice as long after each crash, up to half a minute', () => {
    const delays = [1, 2, 3, 7, 1_000].map((crashes) => restartDelayMs(crashes, 1));
    expect(delays).toEqual([500, 1_000, 2_000, 30_000, 30_000]);
  });

  it('is spread by chance, by a quarter at most', () => {
    expect(restartDelayMs(1, 0)).toBe(375);
  });

  it('begins anew after a life of a minute', () => {
    expect(countCrash(0, 10)).toBe(1);
    expect(countCrash(5, 59_999)).toBe(6);
    expect(countCrash(5, 60_000)).toBe(1);
  });
});
