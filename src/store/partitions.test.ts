import { expect, it } from 'vitest';

import { claimOf, completionOf, newTask } from '../../test/store/lifecycle.js';
import { describeOnDatabasesOfItsOwn, describeOnPostgres } from '../../test/store/support.js';
import { createEmptyDatabase } from '../../test/support/postgres.js';
import { createTestRole } from '../../test/support/roles.js';
import { startPgBouncer } from '../../test/support/services/pgbouncer.js';
import { runOn } from '../../test/support/services/postgres-statement.js';
import { until } from '../../test/support/until.js';
import { firstIdAt, type TaskId } from '../domain/ids.js';
import { cancelTasks } from './cancel-tasks.js';
import { claimTasks } from './claim-tasks.js';
import { LockedError, type Database, type Queryable } from './database.js';
import { completeTasks } from './finish-tasks.js';
import { findRightsProblem } from './database-rights.js';
import { migrate } from './migrate.js';
import { compactInputs, dropHistory, dropInputs, ensurePartitions } from './partitions.js';
import { openPgDatabase } from './pg-database.js';
import { submitTasks } from './submit-tasks.js';

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

describeOnDatabasesOfItsOwn('a day without partitions', (db) => {
  it('R-HA6: is made by the insert, the finish and the cancellation that find it missing', async () => {
    const created = new Date('2045-05-05T23:59:59.999Z');
    const ended = new Date('2046-01-01T00:00:00Z');
    const ids = [0, 1, 2].map((n) => firstIdAt(created.getTime() + n));
    const [one, member, cancelled] = ids.map((taskId, n) =>
      newTask({ taskId, ...(n === 1 ? { workflowId: 'w' } : {}) }),
    );
    if (!one || !member || !cancelled) throw new Error('three tasks were made');
    await submitTasks(db(), [one], created);
    await submitTasks(db(), [member, cancelled], created);
    await db().run(`update sluice.tasks set status = 'queued', waits_for = null, queued_at = now()
      where waits_for is not null`);
    const claims = [one, member].map(({ taskId }) => claimOf(taskId));
    await claimTasks(db(), claims, 0, 1_000, created);
    expect(
      await completeTasks(
        db(),
        claims.map((held) => completionOf(held)),
        ended,
      ),
    ).toHaveLength(2);
    const later = new Date('2047-01-01T00:00:00Z');
    expect(await cancelTasks(db(), [cancelled.taskId], later)).toHaveLength(1);
    expect(await db().query('select from sluice.task_inputs')).toHaveLength(3);
    const history = await db().query<{ partition: string }>(
      'select tableoid::regclass::text as partition from sluice.task_history order by 1',
    );
    expect(history.map(({ partition }) => partition)).toEqual([
      'sluice.task_history_20460101',
      'sluice.task_history_20460101',
      'sluice.task_history_20470101',
    ]);
  });

  it('R-HA6: a day that retention has detached is attached again by the insert that needs it', async () => {
    await makeFiveDays(db());
    const kept = await putInput(db(), on(2));
    await db().query('alter table sluice.task_inputs detach partition sluice.task_inputs_20010102');
    const taskId = firstIdAt(on(2).getTime() + 1);
    await submitTasks(db(), [newTask({ taskId })], on(2));
    const rows = await db().query(
      'select from sluice.task_inputs where task_id = any($1::uuid[])',
      [[kept, taskId]],
    );
    expect(rows).toHaveLength(2);
  });
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

/** Inputs of tasks that were purged, incompressible, of 1 kB each. */
async function fill(db: Queryable, at: Date, count: number): Promise<void> {
  await db.query(
    `insert into sluice.task_inputs (task_id, parameters)
     select
       (lpad(to_hex($1::bigint), 12, '0') || '7' || lpad(n::text, 19, '0'))::uuid,
       to_json((select string_agg(md5(random()::text || n || m), '') from generate_series(1, 32) m))
     from generate_series(1, $2) n`,
    [at.getTime(), count],
  );
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

  it('R-HA6: a day that a task came to while it was detached stays, with its inputs', async () => {
    await makeFiveDays(db());
    const taskId = firstIdAt(on(2).getTime());
    await submitTasks(db(), [newTask({ taskId })], on(2));
    await db().query('alter table sluice.task_inputs detach partition sluice.task_inputs_20010102');
    expect(await dropInputs(db(), 9, on(30))).not.toContain('task_inputs_20010102');
    expect(await inputs('task_inputs_20010102')).toEqual([taskId]);
    expect(await db().query('select from sluice.task_inputs')).toHaveLength(1);
  });

  it('R-HA6: a task that is kept for long keeps its own inputs, not those of its day', async () => {
    await makeFiveDays(db());
    const [living, ended] = [firstIdAt(on(2).getTime()), firstIdAt(on(2).getTime() + 1)];
    const draft = { parametersJson: '{"text":"é\\u0000"}', runAt: on(300) };
    await submitTasks(db(), [newTask({ taskId: living, ...draft })], on(2));
    await putInput(db(), new Date(on(2).getTime() + 1));
    await putHistory(db(), ended, on(4));
    await fill(db(), on(2), 3_000);
    expect(await compactInputs(db(), 7, null, 9, on(9))).toEqual({ compacted: [], next: null });
    const first = await compactInputs(db(), 7, null, 1, on(11));
    expect(first).toEqual({ compacted: ['task_inputs_20010102'], next: '2001-01-02' });
    expect(await inputs('task_inputs_20010102')).toEqual([living, ended]);
    const [kept] = await db().query<{ text: string }>(
      'select parameters::text as text from sluice.task_inputs where task_id = $1',
      [living],
    );
    expect(kept?.text).toBe(draft.parametersJson);
    // It goes on to take part: inserted into, compacted again, and dropped in the end.
    const late = newTask({ taskId: firstIdAt(on(2).getTime() + 2) });
    await submitTasks(db(), [late], on(11));
    expect(await compactInputs(db(), 7, null, 9, on(30))).toEqual({ compacted: [], next: null });
    await fill(db(), new Date(on(2).getTime() + 1_000), 3_000);
    expect((await compactInputs(db(), 7, null, 9, on(30))).compacted).toHaveLength(1);
    await db().run('delete from sluice.tasks; delete from sluice.task_history');
    expect(await dropInputs(db(), 9, on(30))).toContain('task_inputs_20010102');
    expect(await tablesLike(db(), '%_kept')).toEqual([]);
  });

  it('R-HA6: goes on where a server died while it copied, and leaves no copy of a dropped day', async () => {
    await makeFiveDays(db());
    const taskId = firstIdAt(on(2).getTime());
    await submitTasks(db(), [newTask({ taskId })], on(2));
    await fill(db(), on(2), 3_000);
    const copy = 'sluice.task_inputs_20010102_kept';
    await db().run(`create table ${copy} (like sluice.task_inputs including all)`);
    expect((await compactInputs(db(), 7, null, 9, on(30))).compacted).toHaveLength(1);
    await db().run(`create table ${copy} (like sluice.task_inputs including all)`);
    await db().run('delete from sluice.tasks');
    await dropInputs(db(), 9, on(30));
    expect(await tablesLike(db(), 'task_inputs_20010102%')).toEqual([]);
  });

  async function inputs(table: string): Promise<TaskId[]> {
    const rows = await db().query<{ id: TaskId }>(
      `select task_id as id from sluice.task_inputs
       where tableoid = ('sluice.' || $1)::regclass order by 1`,
      [table],
    );
    return rows.map(({ id }) => id);
  }

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

  it('R-ST6: behind PgBouncer it waits for no open transaction either', async () => {
    const { db, url } = postgres();
    await makeFiveDays(db);
    const pooler = await startPgBouncer(url, { poolMode: 'transaction', poolSize: 2 });
    const pooled = await openPgDatabase({ url: pooler.url });
    try {
      const reader = await postgres().open();
      await reader.transaction(async (tx) => {
        await tx.query('select count(*) from sluice.task_history');
        expect(await dropHistory(pooled, 7, 9, on(30))).toEqual([]);
      });
      expect(await dropHistory(pooled, 7, 9, on(30))).toHaveLength(5);
      await dropInputs(pooled, 9, on(30));
    } finally {
      await pooled.close();
      await pooler.stop();
    }
  });

  it('R-HA6: days that a role makes which was granted the owner belong to the owner, who may upgrade and drop them', async () => {
    const database = await createEmptyDatabase();
    const [owner, member] = [
      await createTestRole(database.url),
      await createTestRole(database.url),
    ];
    await runOn(
      database.url,
      `create schema sluice authorization ${owner.name}; grant ${owner.name} to ${member.name}`,
    );
    const [ours, theirs] = [
      await openPgDatabase({ url: owner.url }),
      await openPgDatabase({ url: member.url }),
    ];
    try {
      await migrate(ours);
      await ensurePartitions(theirs, 2, on(3));
      await submitTasks(theirs, [newTask({ taskId: firstIdAt(on(2).getTime()) })], on(2));
      await fill(theirs, on(2), 3_000);
      expect((await compactInputs(theirs, 7, null, 9, on(30))).compacted).toHaveLength(1);
      expect(await findRightsProblem(ours, 'change')).toBeNull();
      expect(await dropHistory(ours, 7, 9, on(30))).toHaveLength(5);
      await ours.run('delete from sluice.tasks');
      expect(await dropInputs(ours, 9, on(30))).toHaveLength(5);
    } finally {
      await Promise.all([ours.close(), theirs.close()]);
      await member.drop();
      await owner.drop();
      await database.drop();
    }
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

  it('R-HA6: compacting loses no input of tasks that come and go meanwhile', async () => {
    const { db } = postgres();
    await makeFiveDays(db);
    const servers = await Promise.all([1, 2, 3].map(() => postgres().open()));
    const taskIds: TaskId[] = [];
    let isOver = false;
    const submitting = servers.map(async (server, n) => {
      // No more than these: a day of which much is kept is not compacted.
      for (let round = 0; !isOver && round < 500; round += 1) {
        const taskId = firstIdAt(on(2).getTime() + 10 * round + n);
        await patiently(() => submitTasks(server, [newTask({ taskId })], on(2)));
        taskIds.push(taskId);
      }
    });
    let compacted = 0;
    for (let round = 0; round < 5; round += 1) {
      await fill(db, new Date(on(2).getTime() + dayMs / 3 + round), 2_000);
      await until('the day to be compacted', async () => {
        const rounds = servers.map((server) => compactInputs(server, 7, null, 9, on(30)));
        const settled = await Promise.allSettled(rounds);
        const failed = settled.flatMap((one) =>
          one.status === 'rejected' ? [one.reason as unknown] : [],
        );
        expect(failed.filter((error) => !(error instanceof LockedError))).toEqual([]);
        const done = settled.flatMap((one) =>
          one.status === 'fulfilled' ? one.value.compacted : [],
        );
        compacted += done.length;
        return done.length > 0;
      });
    }
    isOver = true;
    await Promise.all(submitting);
    expect(compacted).toBeGreaterThanOrEqual(5);
    const lost = await db.query(
      `select from sluice.tasks t
       where not exists (select from sluice.task_inputs i where i.task_id = t.id)`,
    );
    expect({ lost: lost.length, submitted: taskIds.length > 10 }).toEqual({
      lost: 0,
      submitted: true,
    });
  });

  /** As the engine's batches are. */
  async function patiently<T>(write: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await write();
      } catch (error) {
        if (!(error instanceof LockedError)) throw error;
      }
    }
  }

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
