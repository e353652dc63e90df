import { expect, it } from 'vitest';

import { atSecond, seedTask } from '../../test/store/seed.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import { countHeldAndEnded, countScheduled } from './statistics.js';

describeOnEveryDatabase('counts of tasks by state', (db) => {
  it('R-OB1: counts what workers hold, what ended badly, and what waits for a time', async () => {
    await seedTask(db(), { status: 'queued' });
    await seedTask(db(), { status: 'assigned' });
    await seedTask(db(), { status: 'executing' });
    await seedTask(db(), { status: 'executing' });
    await seedTask(db(), { status: 'dead_letter' });
    await seedTask(db(), { status: 'pending', waitsFor: 'time', runAt: atSecond(60) });
    const counted = await countHeldAndEnded(db());
    expect(counted).toEqual({ assigned: 1, executing: 2, deadLetter: 1, failed: 0 });
    expect(await countScheduled(db())).toBe(1);
  });
});
