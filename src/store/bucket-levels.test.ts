import { expect, it } from 'vitest';

import { atSecond, zero } from '../../test/store/seed.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import { ownBucket, sharedBucket } from '../domain/token-bucket.js';
import { closeLevels, findLevels, purgeLevels, reopenLevels, saveLevels } from './bucket-levels.js';

const own = ownBucket('a "queue", \\{of} mine', 'tokens');
const shared = sharedBucket('account');

describeOnEveryDatabase('bucket levels', (db) => {
  it('R-CH4: are found as they were saved, with their age', async () => {
    const levels = [
      { bucket: shared, tokens: 1.000000001 },
      { bucket: own, tokens: -12.5 },
    ];
    await saveLevels(db(), levels, 250, false, zero);
    expect(await findLevels(db(), atSecond(10))).toEqual([
      { bucket: shared, tokens: 1.000000001, ageMs: 10_250, isFinal: false },
      { bucket: own, tokens: -12.5, ageMs: 10_250, isFinal: false },
    ]);
  });

  it('by the clock of the database, when no instant is given', async () => {
    await saveLevels(db(), [{ bucket: own, tokens: 1 }], 60_000, false, null);
    const [level] = await findLevels(db(), null);
    expect(level?.ageMs).toBeGreaterThanOrEqual(60_000);
    expect(level?.ageMs).toBeLessThan(120_000);
  });

  it('R-CH4: an older look never replaces a newer one, whatever was saved first', async () => {
    await saveLevels(db(), [{ bucket: own, tokens: 5 }], 1_000, false, atSecond(10));
    await saveLevels(db(), [{ bucket: own, tokens: 7 }], 2_000, true, atSecond(10.5));
    const newer = { bucket: own, tokens: 5, ageMs: 1_000, isFinal: false };
    expect(await findLevels(db(), atSecond(10))).toEqual([newer]);
    await saveLevels(db(), [{ bucket: own, tokens: 3 }], 0, false, atSecond(10));
    expect(await findLevels(db(), atSecond(10))).toEqual([{ ...newer, tokens: 3, ageMs: 0 }]);
  });

  it('nothing to save is nothing', async () => {
    await saveLevels(db(), [], 0, true, null);
    expect(await findLevels(db(), null)).toEqual([]);
  });

  it('R-CH4: are final until they are reopened or saved again', async () => {
    const finals = async () => (await findLevels(db(), zero)).map(({ isFinal }) => isFinal);
    await saveLevels(db(), [{ bucket: shared, tokens: 5 }], 0, false, zero);
    await saveLevels(db(), [{ bucket: own, tokens: 5 }], 0, true, zero);
    expect(await finals()).toEqual([false, true]);
    await closeLevels(db());
    expect(await finals()).toEqual([true, true]);
    await reopenLevels(db());
    expect(await finals()).toEqual([false, false]);
    await closeLevels(db());
    await saveLevels(db(), [{ bucket: own, tokens: 4 }], 0, false, atSecond(1));
    expect(await finals()).toEqual([true, false]);
  });

  it('are purged when nobody touched them for long', async () => {
    const dayMs = 86_400_000;
    await saveLevels(db(), [{ bucket: own, tokens: 5 }], dayMs + 1, false, zero);
    await saveLevels(db(), [{ bucket: shared, tokens: 5 }], dayMs, false, zero);
    expect(await purgeLevels(db(), dayMs, zero)).toBe(1);
    expect((await findLevels(db(), zero)).map(({ bucket }) => bucket)).toEqual([shared]);
  });
});

describeOnPostgres('bucket levels of two servers', (postgres) => {
  it('R-CH4: saved at once in any order, the newest stay, and none waits in a circle', async () => {
    const db = await postgres().openPatient();
    const other = await postgres().openPatient();
    const buckets = Array.from({ length: 500 }, (_, n) => ownBucket(`q${String(n)}`, 'requests'));
    for (let second = 0; second < 20; second += 1) {
      const levels = buckets.map((bucket) => ({ bucket, tokens: second }));
      await Promise.all([
        saveLevels(db, levels, 0, false, atSecond(second)),
        saveLevels(other, levels.toReversed(), 500, false, atSecond(second)),
        saveLevels(other, stale(levels), 600, false, atSecond(second)),
      ]);
      const found = await findLevels(db, atSecond(second));
      expect(new Set(found.map(({ ageMs }) => ageMs))).toEqual(new Set([0]));
      expect(new Set(found.map(({ tokens }) => tokens))).toEqual(new Set([second]));
    }
  });
});

function stale(levels: readonly { readonly bucket: string }[]) {
  return levels.map(({ bucket }) => ({ bucket, tokens: -1 }));
}
