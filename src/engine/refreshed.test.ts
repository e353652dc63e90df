import { describe, expect, it } from 'vitest';
import { until } from '../../test/support/until.js';
import { Refreshed } from './refreshed.js';

describe('a value that is read when somebody asks', () => {
  it('is read once for all who ask together, and not again while it is fresh', async () => {
    let reads = 0;
    const value = new Refreshed(async () => (reads += 1));
    expect(await Promise.all([value.get(), value.get(), value.get()])).toEqual([1, 1, 1]);
    expect(await value.get()).toBe(1);
    expect(await value.refresh()).toBe(2);
    expect(await value.get()).toBe(2);
  });

  it('R-OB1: nobody waits for a read that takes long, unless there is none before', async () => {
    let end: (value: number) => void = () => undefined;
    const reading = () => new Promise<number>((resolve) => (end = resolve));
    const value = new Refreshed(reading);
    const first = value.get();
    end(1);
    expect(await first).toBe(1);
    const slow = value.refresh();
    // Longer than what is worth waiting for.
    await until('some time to pass', () => new Promise((resolve) => setTimeout(resolve, 30, true)));
    end(2);
    expect(await slow).toBe(2);
    void value.refresh();
    expect(await value.get()).toBe(2);
    end(3);
  });

  it('is the last one where a new one can not be read, for those who take it', async () => {
    let isAway = false;
    const value = new Refreshed(async () => {
      if (isAway) throw new Error('away');
      return 1;
    });
    await value.get();
    isAway = true;
    await expect(value.refresh()).rejects.toThrow('away');
    expect(await value.getEvenOld()).toBe(1);
  });
});
