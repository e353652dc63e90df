import { expect, it } from 'vitest';

import { describeOnPostgres } from '../../test/store/support.js';
import { until } from '../../test/support/until.js';
import { DatabaseAwayError } from './database.js';

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
});
