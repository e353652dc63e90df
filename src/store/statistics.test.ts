import fc from 'fast-check';
import { expect, it } from 'vitest';

import { atSecond, seedTask, zero } from '../../test/store/seed.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import { defaultAgeing, effectivePriority, priorities } from '../domain/priority.js';
import { defaultQueueSettings } from '../domain/queue-settings.js';
import { putQueue } from './queues.js';
import { countLine, countScheduled, measureAges } from './statistics.js';

describeOnEveryDatabase('countLine', (db) => {
  it('counts what is in line by queue and priority, with its oldest', async () => {
    await seedTask(db(), { queue: 'a', priority: 'high' });
    await seedTask(db(), { queue: 'a', priority: 'high', eligibleAt: atSecond(-5) });
    await seedTask(db(), { queue: 'b', priority: 'low', eligibleAt: atSecond(-600) });
    const runAt = atSecond(60);
    await seedTask(db(), { queue: 'a', status: 'pending', waitsFor: 'time', runAt });
    await seedTask(db(), { queue: 'a', status: 'executing' });
    const high = { queue: 'a', priority: 'high', effectivePriority: 'high' } as const;
    expect(await countLine(db(), zero)).toEqual([
      { ...high, count: 2, oldestEligibleAt: atSecond(-5) },
      {
        queue: 'b',
        priority: 'low',
        effectivePriority: 'medium',
        count: 1,
        oldestEligibleAt: atSecond(-600),
      },
    ]);
    expect(await countScheduled(db())).toBe(1);
  });

  it('an empty line has no counts and no ages', async () => {
    expect(await countLine(db(), zero)).toEqual([]);
    expect(await measureAges(db(), zero)).toEqual({ p50Seconds: null, p95Seconds: null });
  });

  it('R-CH2: ages exactly as the domain does, with every setting', async () => {
    const threshold = fc.option(fc.integer({ min: 1, max: 3000 }), { nil: null });
    const ageing = fc.record({
      lowToMediumMs: threshold,
      lowToHighMs: threshold,
      mediumToHighMs: threshold,
    });
    const waiting = fc.tuple(fc.constantFrom(...priorities), fc.integer({ min: 0, max: 3000 }));
    await fc.assert(
      fc.asyncProperty(ageing, waiting, async (settings, [priority, ageMs]) => {
        await db().query('delete from sluice.tasks');
        await putQueue(db(), 'q', { ...defaultQueueSettings, ageing: settings }, zero);
        const eligibleAt = new Date(zero.getTime() - ageMs);
        await seedTask(db(), { queue: 'q', priority, eligibleAt });
        const [row] = await countLine(db(), zero);
        expect(row?.effectivePriority).toBe(effectivePriority(priority, ageMs, settings));
      }),
      { numRuns: 60 },
    );
  });

  it('a queue whose row is not written yet ages by the defaults', async () => {
    const thresholds: [(typeof priorities)[number], number][] = [
      ['low', defaultAgeing.lowToMediumMs ?? 0],
      ['low', defaultAgeing.lowToHighMs ?? 0],
      ['medium', defaultAgeing.mediumToHighMs ?? 0],
    ];
    for (const [priority, thresholdMs] of thresholds) {
      for (const ageMs of [thresholdMs - 1, thresholdMs]) {
        await db().query('delete from sluice.tasks');
        await seedTask(db(), { priority, eligibleAt: new Date(zero.getTime() - ageMs) });
        const [row] = await countLine(db(), zero);
        expect(row?.effectivePriority).toBe(effectivePriority(priority, ageMs, defaultAgeing));
      }
    }
  });

  it('measures how long half of them and nearly all of them have waited', async () => {
    for (let age = 1; age <= 20; age += 1) await seedTask(db(), { eligibleAt: atSecond(-age) });
    expect(await measureAges(db(), zero)).toEqual({ p50Seconds: 10, p95Seconds: 19 });
  });
});
