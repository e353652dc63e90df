import fc from 'fast-check';
import { beforeEach, expect, it } from 'vitest';

import { explained } from '../../test/store/explained.js';
import { atSecond, zero } from '../../test/store/seed.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import { shortage, slotAt, type SubmissionLimit } from '../domain/submission-limit.js';
import type { Database, Queryable } from './database.js';
import { purgeSubmissions, returnSubmissions, spendSubmissions } from './submission-limits.js';

const minute: SubmissionLimit = { rate: 5, perSeconds: 60 };
const hour: SubmissionLimit = { rate: 8, perSeconds: 3_600 };

async function spend(db: Queryable, tasks: number, at: Date, limits = [minute], subject = 'key a') {
  const [grant] = await spendSubmissions(db, limits, [{ subject, tasks }], at);
  if (grant === undefined) throw new Error('a want was not answered');
  return grant;
}

async function granted(...given: Parameters<typeof spend>): Promise<number> {
  return (await spend(...given)).granted;
}

function emptyBefore(db: () => Database): void {
  beforeEach(() => db().run('delete from sluice.submissions'));
}

describeOnEveryDatabase('submission limits', (db) => {
  emptyBefore(db);

  it('R-AD4: lets through what there is room for, at once, and nothing more until that is a window old', async () => {
    expect(await granted(db(), 3, zero)).toBe(3);
    expect(await granted(db(), 3, atSecond(10))).toBe(2);
    expect(await granted(db(), 1, atSecond(59.9))).toBe(0);
    expect(await granted(db(), 9, atSecond(62))).toBe(3);
    expect(await granted(db(), 9, atSecond(72))).toBe(2);
  });

  it('R-AD4: a want that is greater than any limit is met in part', async () => {
    expect(await spend(db(), 1_000, zero)).toMatchObject({ granted: 5 });
  });

  it('R-AD4: burst and sustained: every limit must have room', async () => {
    const both = [minute, hour];
    expect(await granted(db(), 5, zero, both)).toBe(5);
    expect(await granted(db(), 5, atSecond(100), both)).toBe(3);
    expect(await granted(db(), 5, atSecond(200), both)).toBe(0);
    expect(await granted(db(), 5, atSecond(3_600 * 1.02 + 1), both)).toBe(5);
  });

  it('R-AD4: everybody has a limit of their own, whatever they are called', async () => {
    const names = ['key a', 'user a', 'user "{a,b}" \\ ', 'user é', 'user É', 'key '];
    const wants = names.map((subject) => ({ subject, tasks: 4 }));
    const first = await spendSubmissions(db(), [minute], wants, zero);
    expect(new Set(first.map(({ subject }) => subject))).toEqual(new Set(names));
    for (const grant of first) expect(grant).toMatchObject({ granted: 4, slots: null });
    const second = await spendSubmissions(db(), [minute], wants, zero);
    for (const grant of second) expect(grant.granted).toBe(1);
  });

  it('R-AD3: says what counts when not all pass, and from it when there is room again', async () => {
    await spend(db(), 2, zero);
    const { slots, atMs } = await spend(db(), 9, atSecond(30));
    expect(atMs).toBe(atSecond(30).getTime());
    const { waitMs } = shortage([minute], slots ?? [], atMs) ?? { waitMs: 0 };
    expect(waitMs).toBeGreaterThan(30_000);
    expect(await granted(db(), 1, new Date(atMs + waitMs - 1))).toBe(0);
    expect(await granted(db(), 1, new Date(atMs + waitMs))).toBe(1);
  });

  it('by the clock of the database, when no instant is given', async () => {
    const [grant] = await spendSubmissions(db(), [minute], [{ subject: 'key a', tasks: 6 }], null);
    expect(grant?.granted).toBe(5);
    expect(Math.abs((grant?.atMs ?? 0) - Date.now())).toBeLessThan(600_000);
  });

  it('R-AD4: a clock that goes back a little frees nothing, one that was far ahead is forgotten', async () => {
    expect(await granted(db(), 5, atSecond(70))).toBe(5);
    expect(await granted(db(), 5, atSecond(69))).toBe(0);
    expect(await granted(db(), 5, atSecond(70 - 120))).toBe(5);
  });

  it('R-AD4: what is given back may be used again, in every window', async () => {
    const both = [minute, hour];
    const { atMs } = await spend(db(), 5, zero, both);
    await returnSubmissions(db(), [
      { subject: 'key a', tasks: 1, atMs },
      { subject: 'key a', tasks: 1, atMs },
      { subject: 'key nobody', tasks: 1, atMs },
    ]);
    expect(await granted(db(), 5, atSecond(1), both)).toBe(2);
    expect(await granted(db(), 5, atSecond(100), both)).toBe(3);
    expect(await granted(db(), 5, atSecond(200), both)).toBe(0);
  });

  it('R-AD4: no more is given back than was taken', async () => {
    const { atMs } = await spend(db(), 2, zero);
    await spend(db(), 3, atSecond(10));
    await returnSubmissions(db(), [{ subject: 'key a', tasks: 100, atMs }]);
    expect(await granted(db(), 9, atSecond(20))).toBe(2);
    await returnSubmissions(db(), [{ subject: 'key a', tasks: 1, atMs: atMs - 3_600_000 }]);
    expect(await granted(db(), 9, atSecond(20))).toBe(0);
  });

  it('R-AD4: a limit that was lowered or dropped counts what was before', async () => {
    await spend(db(), 4, zero, [minute, hour]);
    expect(await granted(db(), 9, atSecond(1), [{ rate: 3, perSeconds: 60 }])).toBe(0);
    expect(await granted(db(), 9, atSecond(2), [{ rate: 6, perSeconds: 60 }])).toBe(2);
  });

  it('R-AD4: those who submit no more are purged, a bounded number at a time', async () => {
    const subjects = ['key a', 'key b', 'key c', 'key d'];
    const wants = subjects.map((subject) => ({ subject, tasks: 1 }));
    await spendSubmissions(db(), [hour], wants, zero);
    await spend(db(), 1, atSecond(20_000), [hour], 'key d');
    expect(await purgeSubmissions(db(), 2, atSecond(7_200))).toBe(0);
    expect(await purgeSubmissions(db(), 2, atSecond(10_800))).toBe(2);
    expect(await purgeSubmissions(db(), 2, atSecond(10_800))).toBe(1);
    expect(await purgeSubmissions(db(), 2, atSecond(10_800))).toBe(0);
    const left = await db().query('select subject from sluice.submissions');
    expect(left).toEqual([{ subject: 'key d' }]);
  });
});

describeOnPostgres('the arithmetic of submission limits', (postgres) => {
  emptyBefore(() => postgres().db);

  it('R-AD4: never more than the rate in any window, never refused without need, and the wait is exact', async () => {
    const step = fc.record({
      afterMs: fc.oneof(fc.nat(500), fc.nat(5_000), fc.nat(60_000)),
      tasks: fc.integer({ min: 1, max: 8 }),
      isReturned: fc.nat(4).map((one) => one === 0),
    });
    const limit = fc.record({
      rate: fc.integer({ min: 1, max: 12 }),
      perSeconds: fc.integer({ min: 1, max: 90 }),
    });
    let lives = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(limit, { minLength: 1, maxLength: 3 }),
        fc.array(step, { minLength: 1, maxLength: 25 }),
        async (limits, steps) => {
          lives += 1;
          const distinct = [...new Map(limits.map((one) => [one.perSeconds, one])).values()];
          await live(postgres().db, `key ${String(lives)}`, distinct, steps);
        },
      ),
      { numRuns: 40 },
    );
  });

  it('R-AD4: two servers at once let through exactly the rate', async () => {
    const db = await postgres().openPatient(10);
    const other = await postgres().openPatient(10);
    const limits = [{ rate: 100, perSeconds: 60 }];
    const subjects = ['user b', 'key a', 'user c'];
    const wants = subjects.map((subject) => ({ subject, tasks: 2 }));
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, n) =>
        spendSubmissions(
          n % 2 === 0 ? db : other,
          limits,
          n % 3 ? wants : wants.toReversed(),
          zero,
        ),
      ),
    );
    for (const subject of subjects) {
      const grants = answers.flat().filter((grant) => grant.subject === subject);
      expect(grants.reduce((sum, grant) => sum + grant.granted, 0)).toBe(100);
    }
  });

  it('finds every row by its key, without statistics', async () => {
    await postgres().db.query(
      `insert into sluice.submissions (subject, slots, wanted, granted, purge_at)
       select 'user ' || n, '{}', 1, 1, now() from generate_series(1, 5000) n`,
    );
    for (const made of ['for its parameters', 'for any parameters'] as const) {
      const { db, plans } = explained(postgres().db, made);
      const wants = [{ subject: 'user 17', tasks: 1 }];
      await spendSubmissions(db, [minute, hour], wants, zero);
      await returnSubmissions(db, [{ subject: 'user 17', tasks: 1, atMs: zero.getTime() }]);
      await purgeSubmissions(db, 10, zero);
      for (const { statement, pages } of plans) expect(pages, statement).toBeLessThan(100);
    }
  });
});

interface Step {
  readonly afterMs: number;
  readonly tasks: number;
  readonly isReturned: boolean;
}

/** Beside what Postgres does, remembers every task that passed, and when. */
async function live(
  db: Queryable,
  subject: string,
  limits: readonly SubmissionLimit[],
  steps: readonly Step[],
): Promise<void> {
  const passed: number[] = [];
  let nowMs = zero.getTime();
  for (const { afterMs, tasks, isReturned } of steps) {
    nowMs += afterMs;
    const grant = await spend(db, tasks, new Date(nowMs), [...limits], subject);
    const room = limits.map((limit) => limit.rate - countedAt(limit, passed, nowMs));
    expect(grant.granted).toBe(Math.max(0, Math.min(tasks, ...room)));
    if (grant.granted < tasks) {
      const { waitMs } = shortage(limits, grant.slots ?? [], nowMs) ?? { waitMs: 0 };
      const all = [...passed, ...Array.from({ length: grant.granted }, () => nowMs)];
      const hasRoom = (atMs: number) =>
        limits.every((limit) => countedAt(limit, all, atMs) < limit.rate);
      expect(hasRoom(nowMs + waitMs)).toBe(true);
      expect(hasRoom(nowMs + waitMs - 1)).toBe(false);
    }
    if (isReturned && grant.granted > 0) {
      await returnSubmissions(db, [{ subject, tasks: grant.granted, atMs: nowMs }]);
    } else {
      for (let n = 0; n < grant.granted; n += 1) passed.push(nowMs);
    }
    for (const limit of limits) expect(mostInWindow(limit, passed)).toBeLessThanOrEqual(limit.rate);
  }
}

/** What a window and the slot that sticks out of it hold. */
function countedAt(limit: SubmissionLimit, passed: readonly number[], nowMs: number): number {
  const now = slotAt(limit, nowMs);
  return passed.filter((atMs) => slotAt(limit, atMs) >= now - 50).length;
}

function mostInWindow({ perSeconds }: SubmissionLimit, passed: readonly number[]): number {
  const counts = passed.map(
    (endMs) => passed.filter((atMs) => atMs > endMs - perSeconds * 1_000 && atMs <= endMs).length,
  );
  return Math.max(0, ...counts);
}
