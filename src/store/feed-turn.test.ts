import { expect, it } from 'vitest';

import { describeOnPostgres } from '../../test/store/support.js';
import { withFeedTurns } from './feed-turn.js';

function windows(count: number) {
  return Array.from({ length: count }, (_, n) => ({
    lane: { queue: `q"${String(n)}`, taskType: 't', capabilities: ['gpu'] },
    priority: 'high' as const,
  }));
}

describeOnPostgres('withFeedTurns', (postgres) => {
  it('R-CH8: a window is fed by one server at a time, and then by another', async () => {
    const { db } = postgres();
    const other = await postgres().open();
    const ask = () => withFeedTurns(other, windows(1), (areOurs) => Promise.resolve(areOurs));
    await withFeedTurns(db, windows(1), async (areOurs) => {
      expect(areOurs).toEqual([true]);
      expect(await ask()).toEqual([false]);
    });
    expect(await ask()).toEqual([true]);
  });

  it('another window is free, and a thousand are no trouble', async () => {
    const { db } = postgres();
    const other = await postgres().open();
    const many = windows(1_000);
    const [first] = many;
    await withFeedTurns(db, first === undefined ? [] : [first], async (ours) => {
      expect(ours).toEqual([true]);
      const theirs = await withFeedTurns(other, many, (areOurs) => Promise.resolve(areOurs));
      expect(theirs).toHaveLength(1_000);
      expect(theirs[0]).toBe(false);
      expect(theirs.filter((isOurs) => isOurs).length).toBeGreaterThan(900);
    });
  });

  it('a turn ends with the work that failed', async () => {
    const { db } = postgres();
    const failing = withFeedTurns(db, windows(1), () => Promise.reject(new Error('no')));
    await expect(failing).rejects.toThrow('no');
    expect(await withFeedTurns(db, windows(1), (ours) => Promise.resolve(ours))).toEqual([true]);
  });
});
