import { expect, it } from 'vitest';

import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import { firstIdAt } from '../domain/ids.js';
import type { Database } from './database.js';
import { ensurePartitions } from './partitions.js';

describeOnEveryDatabase('ensurePartitions', (db) => {
  it('makes the days from two back to so many ahead, and again changes nothing', async () => {
    const now = new Date('2031-03-01T23:59:59.999Z');
    await ensurePartitions(db(), 1, now);
    await ensurePartitions(db(), 1, now);
    const days = ['20310227', '20310228', '20310301', '20310302'];
    expect(await partitionsOf('task_inputs', '2031')).toEqual(
      days.map((day) => `task_inputs_${day}`),
    );
    expect(await partitionsOf('task_history', '2031')).toEqual(
      days.map((day) => `task_history_${day}`),
    );
  });

  it('a day begins at midnight UTC, in an id as in an instant', async () => {
    const midnight = Date.parse('2032-06-10T00:00:00Z');
    await ensurePartitions(db(), 0, new Date(midnight));
    const put = async (ms: number): Promise<string | undefined> => {
      const [row] = await db().query<{ partition: string }>(
        `insert into sluice.task_inputs (task_id, parameters) values ($1, '{}')
         returning tableoid::regclass::text as partition`,
        [firstIdAt(ms)],
      );
      return row?.partition;
    };
    expect(await put(midnight)).toBe('sluice.task_inputs_20320610');
    expect(await put(midnight - 1)).toBe('sluice.task_inputs_20320609');
  });

  async function partitionsOf(parent: string, year: string): Promise<string[]> {
    const rows = await db().query<{ name: string }>(
      `select child.relname as name from pg_inherits
       join pg_class child on child.oid = inhrelid
       where inhparent = ('sluice.' || $1)::regclass and child.relname like $1 || '_' || $2 || '%'
       order by 1`,
      [parent, year],
    );
    return rows.map((row) => row.name);
  }
});

describeOnPostgres('ensurePartitions', (postgres) => {
  it('R-ST8: several servers at once make each partition once', async () => {
    const now = new Date('2033-01-10T12:00:00Z');
    const pools: Database[] = await Promise.all([1, 2, 3, 4].map(() => postgres().open()));
    await Promise.all(pools.map((db) => ensurePartitions(db, 5, now)));
  });

  it('R-ST7: waits for no transaction that is open on the table, and holds up none', async () => {
    const { db } = postgres();
    await db.transaction(async (tx) => {
      await tx.query(`insert into sluice.task_inputs (task_id, parameters) values ($1, '{}')`, [
        firstIdAt(Date.now()),
      ]);
      await ensurePartitions(db, 0, new Date('2034-01-10T12:00:00Z'));
      await db.query(`insert into sluice.task_inputs (task_id, parameters) values ($1, '{}')`, [
        firstIdAt(Date.now() + 1),
      ]);
    });
  });
});
