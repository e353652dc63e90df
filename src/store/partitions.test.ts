import { expect, it } from 'vitest';

import { describeOnDatabasesOfItsOwn, describeOnPostgres } from '../../test/store/support.js';
import { until } from '../../test/support/until.js';
import { firstIdAt, type TaskId } from '../domain/ids.js';
import type { Database, Queryable } from './database.js';
import { dropHistory, dropInputs, ensurePartitions } from './partitions.js';

describeOnDatabasesOfItsOwn('ensurePartitions', (db) => {
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

const dayMs = 24 * 3_600_000;

/** Of January 2001: long before all days that other tests have. */
function on(day: number): Date {
  return new Date(Date.UTC(2001, 0, day, 12));
}

/** Partitions of the first five days, and of nothing else that long ago. */
async function makeFiveDays(db: Queryable): Promise<void> {
  for (const name of await tablesLike(db, 'task_%_2001%')) {
    await db.run(`drop table sluice.${name}`);
  }
  await ensurePartitions(db, 2, on(3));
}

async function putInput(db: Queryable, at: Date): Promise<TaskId> {
  const taskId = firstIdAt(at.getTime());
  await db.query(`insert into sluice.task_inputs (task_id, parameters) values ($1, '{}')`, [
    taskId,
  ]);
  return taskId;
}

async function putHistory(db: Queryable, taskId: TaskId, endedAt: Date): Promise<void> {
  await db.query(
    `insert into sluice.task_history
       (id, seq, queue, task_type, capabilities, priority, status, created_at, eligible_at, ended_at,
        timeout_seconds, max_retries, retry_count, attempt, deferrals, returns, halts_workflow, tags,
        past_attempts)
     values ($1, 1, 'q', 't', '{}', 1, 'completed', $2, $2, $2, 1, 1, 0, 1, 0, 0, true, '{}', '{}')`,
    [taskId, endedAt],
  );
}

async function tablesLike(db: Queryable, name: string): Promise<string[]> {
  const rows = await db.query<{ name: string }>(
    `select relname as name from pg_class
     where relnamespace = 'sluice'::regnamespace and relkind = 'r' and relname like $1 order by 1`,
    [name],
  );
  return rows.map((row) => row.name);
}

describeOnDatabasesOfItsOwn('dropHistory and dropInputs', (db) => {
  it('R-ST6: days that ended longer ago are dropped as a whole, a bounded number at a time', async () => {
    await makeFiveDays(db());
    const { dropped, left } = await dropAt(new Date('2001-01-10T23:59:59Z'), 7);
    expect(dropped).toEqual(['task_history_20010101', 'task_history_20010102']);
    expect(left).toEqual([
      'task_history_20010103',
      'task_history_20010104',
      'task_history_20010105',
    ]);
    expect(await dropHistory(db(), 7, 1, on(30))).toEqual(['task_history_20010103']);
    expect(await dropHistory(db(), 7, 9, on(30))).toHaveLength(2);
  });

  it('a day that is kept for new tasks is not dropped, however short the retention', async () => {
    await makeFiveDays(db());
    await ensurePartitions(db(), 0, on(5));
    const { left } = await dropAt(on(5), 1);
    expect(left).toEqual([
      'task_history_20010103',
      'task_history_20010104',
      'task_history_20010105',
    ]);
  });

  it('R-ST6: inputs go when neither the living nor history has a task of that day', async () => {
    await makeFiveDays(db());
    await putInput(db(), on(1));
    const ended = await putInput(db(), on(2));
    await putHistory(db(), ended, on(4));
    const living = await putInput(db(), on(3));
    await db().query(
      `insert into sluice.tasks (id, queue, task_type, priority, status, created_at, eligible_at,
         queued_at, timeout_seconds, max_retries)
       values ($1, 'q', 't', 1, 'queued', now(), now(), now(), 1, 1)`,
      [living],
    );
    const now = on(20);
    expect(await dropInputs(db(), 9, now)).toEqual([
      'task_inputs_20010101',
      'task_inputs_20010104',
      'task_inputs_20010105',
    ]);
    expect(await dropHistory(db(), 7, 9, now)).toHaveLength(5);
    expect(await dropInputs(db(), 9, now)).toEqual(['task_inputs_20010102']);
    await db().query('delete from sluice.tasks');
    expect(await dropInputs(db(), 9, now)).toEqual(['task_inputs_20010103']);
  });

  it('goes on where a server died: detached, and not dropped yet', async () => {
    await makeFiveDays(db());
    await db().query(
      'alter table sluice.task_history detach partition sluice.task_history_20010101',
    );
    expect(await dropHistory(db(), 7, 9, on(30))).toHaveLength(5);
    expect(await tablesLike(db(), 'task_history_2001%')).toEqual([]);
    await dropInputs(db(), 9, on(30));
  });

  async function dropAt(
    now: Date,
    keptDays: number,
  ): Promise<{ dropped: string[]; left: string[] }> {
    const dropped = await dropHistory(db(), keptDays, 9, now);
    await dropInputs(db(), 9, now);
    return { dropped, left: await tablesLike(db(), 'task_history_2001%') };
  }
});

describeOnPostgres('dropHistory', (postgres) => {
  it('R-ST6: nobody waits for it while a transaction that reads history stays open', async () => {
    const { db } = postgres();
    await makeFiveDays(db);
    const now = on(30);
    const reader = await postgres().open();
    await reader.transaction(async (tx) => {
      await tx.query('select count(*) from sluice.task_history');
      expect(await dropHistory(db, 7, 9, now)).toEqual([]);
      const dropping = dropHistory(db, 7, 9, now);
      // Each of these would wait for the one that waits for the reader, if it locked them out.
      for (let n = 0; n < 20; n += 1) {
        const taskId = await putInput(db, new Date(Date.now() + n));
        await putHistory(db, taskId, new Date());
        await db.query('select from sluice.task_history where id = $1', [taskId]);
      }
      expect(await dropping).toEqual([]);
      await ensurePartitions(db, 0, new Date(Date.now() + 20 * dayMs));
    });
    await until('all five days to be gone', async () => {
      await dropHistory(db, 7, 9, now);
      return (await tablesLike(db, 'task_history_2001%')).length === 0;
    });
    await dropInputs(db, 9, now);
  });

  it('R-ST6: several servers at once drop each day once', async () => {
    const { db } = postgres();
    await makeFiveDays(db);
    const servers = await Promise.all([1, 2, 3].map(() => postgres().open()));
    await until('all five days to be gone', async () => {
      await Promise.all(servers.map((server) => dropHistory(server, 7, 9, on(30))));
      return (await tablesLike(db, 'task_history_2001%')).length === 0;
    });
    await dropInputs(db, 9, on(30));
  });

  it('inputs of a transaction that has not committed yet are kept', async () => {
    const { db } = postgres();
    await makeFiveDays(db);
    const writer = await postgres().open();
    await writer.transaction(async (tx) => {
      await putInput(tx, on(2));
      expect(await dropInputs(db, 9, on(30))).not.toContain('task_inputs_20010102');
    });
    const [kept] = await db.query(`select from sluice.task_inputs where task_id = $1`, [
      firstIdAt(on(2).getTime()),
    ]);
    expect(kept).toBeDefined();
  });
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
