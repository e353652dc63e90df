import { expect, it } from 'vitest';

import { claimOf, newTasks, rowOf, submitOne } from '../../test/store/lifecycle.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import { Gate } from '../../test/support/gate.js';
import { until } from '../../test/support/until.js';
import type { TaskId } from '../domain/ids.js';
import { claimTasks, type ClaimedRow } from './claim-tasks.js';
import type { Database, Queryable } from './database.js';
import { beginGeneration } from './generation.js';
import { submitTasks } from './submit-tasks.js';

describeOnEveryDatabase('a generation', (db) => {
  it('R-CH4: claims of the present one are granted, of any other refused', async () => {
    const { taskId } = await submitOne(db());
    expect(await beginGeneration(db())).toBe(1);
    expect(await beginGeneration(db())).toBe(2);
    for (const other of [0, 1, 3]) expect(await claim(db(), [taskId], other)).toEqual([]);
    expect(await rowOf(db(), taskId)).toMatchObject({ status: 'queued', attempt: 0 });
    expect(await claim(db(), [taskId], 2)).toHaveLength(1);
  });

  it('is asked for once by a claim of many', async () => {
    const tasks = newTasks(50);
    await submitTasks(db(), tasks, null);
    const counted = db().transaction(async (tx) => {
      await tx.run(countingFence);
      const rows = await claim(tx, idsOf(tasks), 0);
      const [calls] = await tx.query('select last_value as count, is_called from calls');
      throw new RolledBack({ claimed: rows.length, calls });
    });
    await expect(counted).rejects.toMatchObject({
      answer: { claimed: 50, calls: { count: 1, is_called: true } },
    });
  });
});

const countingFence = `
  create sequence calls;
  create or replace function sluice.fenced_queues(expected bigint, oldest_grant bigint) returns text[]
  language plpgsql volatile as $$ begin perform nextval('calls'); return '{}'; end $$;`;

/** The function is replaced for this transaction alone. */
class RolledBack extends Error {
  readonly answer: unknown;

  constructor(answer: unknown) {
    super('rolled back');
    this.answer = answer;
  }
}

describeOnPostgres('a generation that begins while others claim', (postgres) => {
  it('R-CH4: waits for a claim under way, for longer than for a row', async () => {
    const { db } = postgres();
    const { taskId } = await submitOne(db);
    const claimed = new Gate();
    const mayCommit = new Gate();
    const claiming = db.transaction(async (tx) => {
      await claim(tx, [taskId], 0);
      claimed.open();
      await mayCommit.passed;
    });
    await claimed.passed;
    let begun: number | null = null;
    const beginning = beginGeneration(db).then((number) => (begun = number));
    await until('a wait past the timeout for rows', () => waitsFor(db, 'ExclusiveLock', 300));
    expect(begun).toBeNull();

    mayCommit.open();
    expect(await beginning).toBe(1);
    expect(await rowOf(db, taskId)).toMatchObject({ status: 'executing' });
    await claiming;
  });

  it('R-CH4: refuses a claim that waited while it began, and that locked no row before', async () => {
    const { db } = postgres();
    const { taskId } = await submitOne(db);
    const begun = new Gate();
    const mayCommit = new Gate();
    const beginning = db.transaction(async (tx) => {
      await beginGeneration(tx);
      begun.open();
      await mayCommit.passed;
    });
    await begun.passed;
    const claiming = db.transaction(async (tx) => {
      await tx.run(`set local lock_timeout = '10s'`);
      return claim(tx, [taskId], 0);
    });
    await until('a claim that waits', () => waitsFor(db, 'ShareLock', 0));
    await db.query('select from sluice.tasks where id = $1 for update nowait', [taskId]);

    mayCommit.open();
    expect(await claiming).toEqual([]);
    expect(await rowOf(db, taskId)).toMatchObject({ status: 'queued', attempt: 0 });
    await beginning;
  });

  it('R-CH4: of 50 claims at once none commits after it has begun', async () => {
    const claimants = [await postgres().open({ poolSize: 25 }), postgres().db];
    const { db } = postgres();
    let granted = 0;
    let refused = 0;
    for (let generation = 0; generation < 10; generation += 1) {
      const tasks = newTasks(500);
      await submitTasks(db, tasks, null);
      const claims = Array.from({ length: 50 }, (_, n) =>
        claim(claimants[n % 2] ?? db, idsOf(tasks.slice(n * 10, n * 10 + 10)), generation),
      );
      const ended = Promise.allSettled(claims);
      if (generation % 2 === 1) await Promise.race(claims);
      expect(await beginGeneration(db)).toBe(generation + 1);
      const whenBegun = await countExecuting(db);
      const answers = await ended;
      const rows = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
      granted += rows.length;
      refused += tasks.length - rows.length;
      expect(await countExecuting(db)).toBe(whenBegun);
      expect(whenBegun).toBe(granted);
    }
    expect(granted).toBeGreaterThan(0);
    expect(refused).toBeGreaterThan(0);
  });

  it('of several that begin at once each gets a number of its own', async () => {
    const { db } = postgres();
    const numbers = await Promise.all(Array.from({ length: 8 }, () => beginGeneration(db)));
    expect(numbers.sort()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  it('sees what was committed meanwhile, whatever the database does by default', async () => {
    const { db } = postgres();
    const [row] = await db.query<{ name: string }>('select current_database() as name');
    const setting = `alter database "${row?.name ?? ''}" set default_transaction_isolation`;
    await db.run(`${setting} = 'repeatable read'`);
    const other = await postgres().open();
    expect(await other.query('show transaction_isolation')).toEqual([
      { transaction_isolation: 'read committed' },
    ]);
    await db.run(`${setting} = default`);
  });
});

function claim(
  db: Queryable,
  taskIds: readonly TaskId[],
  generation: number,
): Promise<ClaimedRow[]> {
  return claimTasks(
    db,
    taskIds.map((taskId) => claimOf(taskId)),
    generation,
    30_000,
    null,
  );
}

function idsOf(tasks: readonly { readonly taskId: TaskId }[]): TaskId[] {
  return tasks.map((task) => task.taskId);
}

async function waitsFor(db: Database, mode: string, forMs: number): Promise<boolean> {
  const rows = await db.query(
    `select from pg_locks
     where locktype = 'advisory' and not granted and mode = $1
       and database = (select oid from pg_database where datname = current_database())
       and clock_timestamp() - waitstart >= $2::float8 * interval '1 ms'`,
    [mode, forMs],
  );
  return rows.length > 0;
}

async function countExecuting(db: Queryable): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    `select count(*) as count from sluice.tasks where status = 'executing'`,
  );
  return row?.count ?? 0;
}
