import { expect, it } from 'vitest';
import { DeadLetterPatterns } from '../../src/engine/dead-letter-patterns.js';
import { MemoryReadyQueue } from '../../src/ready/memory/memory-ready-queue.js';
import { systemClock } from '../../src/runtime/clock.js';
import { noteUncounted } from '../../src/store/classify-dead-letters.js';
import type { Database } from '../../src/store/database.js';
import { seedTask } from '../store/seed.js';
import { describeOnPostgres } from '../store/support.js';
import { Gate } from '../support/gate.js';
import { contextOf } from './engine-parts.js';

const lookAgainMs = 1_000;

describeOnPostgres('the turn to count dead letters', (postgres) => {
  it('R-OB10: who does not get it tries again soon, and who gets it counts', async () => {
    const { db } = postgres();
    const other = await postgres().open();
    await seedTask(db, { status: 'dead_letter' });
    await noteUncounted(db, null, 10);
    const patterns = patternsOn(db);
    const [taken, done] = [new Gate(), new Gate()];
    const holding = other.transaction(async (tx) => {
      await tx.query(`select pg_advisory_xact_lock(hashtext('sluice.dead_letters'))`);
      taken.open();
      await done.passed;
    });
    await taken.passed;
    expect(await patterns.tick()).toBe(lookAgainMs);
    done.open();
    await holding;
    expect(await patterns.tick()).toBe(lookAgainMs);
    expect(await db.query('select from sluice.dead_letters')).toHaveLength(1);
    expect(await patterns.tick()).toBeGreaterThan(lookAgainMs);
  });

  it('R-OB10: a hundred reads share one run', async () => {
    const { db } = postgres();
    let transactions = 0;
    const watched: Database = {
      ...db,
      transaction: (work) => {
        transactions += 1;
        return db.transaction(work);
      },
    };
    await seedTask(db, { status: 'dead_letter' });
    await noteUncounted(db, null, 10);
    const patterns = patternsOn(watched);
    await Promise.all(Array.from({ length: 100 }, () => patterns.catchUp()));
    expect(transactions).toBe(1);
    expect(await db.query('select from sluice.dead_letters')).toHaveLength(1);
  });
});

function patternsOn(db: Database): DeadLetterPatterns {
  return new DeadLetterPatterns(contextOf(db, new MemoryReadyQueue({ clock: systemClock })));
}
