import { expect, it } from 'vitest';

import { completeTasks } from '../../src/store/finish-tasks.js';
import { endAttempts } from '../../src/store/end-attempts.js';
import { wakeDue } from '../../src/store/feed-line.js';
import { findAttempts, findSettled } from '../../src/store/find-attempts.js';
import { recordProgress, startTasks } from '../../src/store/start-tasks.js';
import type { Database } from '../../src/store/database.js';
import type { Held } from '../../src/protocol/workers-api.js';
import type { ClaimedRow } from '../../src/store/claim-tasks.js';
import { backToPending, claimOne, completionOf, rowOf, runOne, toDeadLetter } from './lifecycle.js';
import { describeOnEveryDatabase } from './support.js';

/**
 * A worker that was believed dead comes back after its task was given to another: whatever it says
 * with its old lease is answered "lost", and the row stays as it is, to the last column.
 */
describeOnEveryDatabase('R-ST3: a stale lease changes nothing', (db) => {
  const writes: Record<string, (db: Database, stale: Held) => Promise<readonly unknown[]>> = {
    start: (db, stale) => startTasks(db, [stale], null),
    progress: (db, stale) => recordProgress(db, [{ ...stale, percent: 99, message: 'late' }]),
    complete: (db, stale) => completeTasks(db, [completionOf(stale, { resultJson: '1' })], null),
    'fail and retry': (db, stale) => endAttempts(db, [backToPending(stale)], null),
    'fail for good': (db, stale) => endAttempts(db, [toDeadLetter(stale)], null),
    release: (db, stale) =>
      endAttempts(
        db,
        [{ ...backToPending(stale, { costsRetry: false }), outcome: 'released', error: null }],
        null,
      ),
    'look up': (db, stale) => findAttempts(db, [stale]),
  };

  for (const [name, write] of Object.entries(writes)) {
    it(`${name} after the task was claimed again by another worker`, async () => {
      const stale = await runOne(db(), {}, { start: false });
      await claimedAgain(stale, false);
      await staysAsItIs(stale, write);
    });

    it(`${name} after the task went back and waits`, async () => {
      const stale = await runOne(db());
      await endAttempts(db(), [backToPending(stale)], null);
      await staysAsItIs(stale, write);
    });

    it(`${name} after the other worker completed it`, async () => {
      const stale = await runOne(db());
      const current = await claimedAgain(stale, true);
      await completeTasks(db(), [completionOf(current)], null);
      await staysAsItIs(stale, write);
      expect(await db().query('select from sluice.task_history')).toHaveLength(1);
    });
  }

  it('a lease that never was settles nothing', async () => {
    const held = await runOne(db());
    const other = await runOne(db());
    expect(await findSettled(db(), [{ taskId: held.taskId, lease: other.lease }])).toEqual([]);
  });

  async function claimedAgain(stale: ClaimedRow, start: boolean): Promise<ClaimedRow> {
    await endAttempts(db(), [backToPending(stale)], null);
    await wakeDue(db(), 1, null);
    return claimOne(db(), stale.taskId, { start });
  }

  async function staysAsItIs(
    stale: ClaimedRow,
    write: (db: Database, stale: Held) => Promise<readonly unknown[]>,
  ): Promise<void> {
    const before = await rowOf(db(), stale.taskId);
    expect(await write(db(), stale)).toEqual([]);
    expect(await rowOf(db(), stale.taskId)).toEqual(before);
  }
});
