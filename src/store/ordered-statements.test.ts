import { expect, it } from 'vitest';

import { describeOnPostgres } from '../../test/store/support.js';
import { until } from '../../test/support/until.js';
import { DatabaseAwayError, LockedError, prepared } from './database.js';

interface Instant {
  readonly at: number;
}

const nowSql = `select date_part('epoch', clock_timestamp()) * 1000 as at`;

function block(ms: number): void {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
}

describeOnPostgres('statements in order', (postgres) => {
  it('R-CH1: are done in the order in which they were asked for', async () => {
    const { ordered } = postgres().db;
    const asked = Array.from({ length: 50 }, (_, n) => n);
    const turns = await Promise.all(
      asked.map(async (n) => {
        const [row] = await ordered.query<Instant & { n: number }>(`${nowSql}, $1::integer as n`, [
          n,
        ]);
        return row;
      }),
    );
    expect(turns.map((row) => row?.n)).toEqual(asked);
    const instants = turns.map((row) => row?.at ?? 0);
    expect(instants).toEqual([...instants].sort((a, b) => a - b));
  });

  it('R-CH1: the next one is there before the last one is answered', async () => {
    const { ordered } = postgres().db;
    await ordered.query('select');
    const slow = ordered.query<Instant>(`${nowSql} from pg_sleep(0.1)`);
    const next = ordered.query<Instant>(nowSql);
    await new Promise((resolve) => setTimeout(resolve, 20));
    const beganMs = Date.now();
    block(500);
    const [[first], [second]] = await Promise.all([slow, next]);
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeLessThan(400);
    expect(second?.at).toBeLessThan(beganMs + 500);
  });

  it('R-ST1: one that fails does not harm its neighbours', async () => {
    const { ordered } = postgres().db;
    const answers = await Promise.allSettled([
      ordered.query('select 1 as n'),
      ordered.query('select 1 / $1::integer as n', [0]),
      ordered.query('select 3 as n'),
    ]);
    expect(answers).toMatchObject([
      { status: 'fulfilled', value: [{ n: 1 }] },
      { status: 'rejected', reason: { code: '22012' } },
      { status: 'fulfilled', value: [{ n: 3 }] },
    ]);
  });

  it('R-ST1: what is under way on a connection that breaks fails, and the next gets another', async () => {
    const { db } = postgres();
    const pidSql = 'select pg_backend_pid() as pid';
    const [before] = await db.ordered.query<{ pid: number }>(pidSql);
    const underWay = Promise.allSettled([
      db.ordered.query('select pg_sleep(10)'),
      db.ordered.query('select 1'),
    ]);
    await until('it to sleep', async () => {
      const asleep = `select from pg_stat_activity where pid = $1::integer and wait_event = 'PgSleep'`;
      return (await db.query(asleep, [before?.pid])).length > 0;
    });
    await db.query('select pg_terminate_backend($1::integer)', [before?.pid]);
    const failed = { status: 'rejected', reason: expect.any(DatabaseAwayError) as Error };
    expect(await underWay).toEqual([failed, failed]);
    const [after] = await db.ordered.query<{ pid: number }>(pidSql);
    expect(after?.pid).not.toBe(before?.pid);
  });

  const pickedSql = prepared(
    'select $1::integer as n, count(*)::integer as workers from sluice.workers',
  );

  it('R-HA2: a statement whose Parse meets a lock takes none of those behind it with it', async () => {
    const db = await postgres().open();
    const holder = await postgres().openPatient(1);
    await holder.transaction(async (tx) => {
      await tx.run('lock table sluice.workers');
      const answers = await Promise.allSettled(
        [1, 2, 3].map((n) => db.ordered.query(pickedSql, [n])),
      );
      const locked = { status: 'rejected', reason: expect.any(LockedError) as Error };
      expect(answers).toEqual([locked, locked, locked]);
    });
    expect(await db.ordered.query(pickedSql, [4])).toMatchObject([{ n: 4 }]);
  });

  it('R-HA2: one that Postgres forgot is prepared again, alone, in a row and in a transaction', async () => {
    const db = await postgres().open({ poolSize: 1 });
    const asked = [1, 2, 3, 4];
    const ask = (on: typeof db.ordered) => Promise.all(asked.map((n) => on.query(pickedSql, [n])));
    const wanted = asked.map((n) => [{ n, workers: 0 }]);
    expect(await ask(db.ordered)).toEqual(wanted);
    await db.ordered.query('discard all');
    expect(await ask(db.ordered)).toEqual(wanted);
    expect(await ask(db)).toEqual(wanted);
    await db.transaction(async (tx) => {
      expect(await tx.query(pickedSql, [5])).toMatchObject([{ n: 5 }]);
      await tx.run('deallocate all');
    });
    const again = db.transaction((tx) => tx.query(pickedSql, [6]));
    await expect(again).rejects.toBeInstanceOf(LockedError);
    expect(await db.transaction((tx) => tx.query(pickedSql, [7]))).toMatchObject([{ n: 7 }]);
  });

  it('R-CH1: one that has to be prepared first is not overtaken', async () => {
    const db = await postgres().open();
    const first = prepared('select $1::integer as n, clock_timestamp() as first');
    const other = prepared('select $1::integer as n, clock_timestamp() as other');
    await db.ordered.query(other, [0]);
    const done: number[] = [];
    const note = async (text: string, n: number) => {
      await db.ordered.query(text, [n]);
      done.push(n);
    };
    await Promise.all([note(first, 1), note(first, 2), note(other, 3), note(first, 4)]);
    expect(done).toEqual([1, 2, 3, 4]);
  });
});
