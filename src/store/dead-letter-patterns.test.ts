import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';

import { claimOf, newTask, submitOne, toDeadLetter } from '../../test/store/lifecycle.js';
import { atSecond, seedTask, zero, type Seed } from '../../test/store/seed.js';
import { describeOnEveryDatabase, describeOnPostgres } from '../../test/store/support.js';
import { Gate } from '../../test/support/gate.js';
import { until } from '../../test/support/until.js';
import { unconfined } from '../domain/confinement.js';
import { maxPatterns } from '../domain/dead-letter-patterns.js';
import { cancelTasks } from './cancel-tasks.js';
import { claimTasks } from './claim-tasks.js';
import { classifyDeadLetters, noteUncounted, purgePatterns } from './classify-dead-letters.js';
import type { Database } from './database.js';
import { countNewPatterns, findDeadLetterPatterns } from './dead-letter-patterns.js';
import { findDeadLetters, listDeadLetters } from './dead-letters.js';
import { endAttempts } from './end-attempts.js';
import { wakeDue } from './feed-line.js';
import { purgeEnded } from './purge-ended.js';
import { replayTasks } from './replay-tasks.js';
import { submitTasks } from './submit-tasks.js';

const status = 'dead_letter';
const dayMs = 24 * 3_600_000;
const never = 1_000 * dayMs;

/** Dead letters that are put there by hand: nothing notes them but the comparison. */
async function seedDead(db: Database, seed: Seed = {}): Promise<string> {
  const { taskId } = await seedTask(db, { status, ...seed });
  return taskId;
}

function error(message: string, code = 'BROKEN', retriable = true) {
  return { code, message, retriable };
}

async function classifyAll(db: Database): Promise<void> {
  let cursor: string | null = null;
  do cursor = await noteUncounted(db, cursor, 1_000);
  while (cursor !== null);
  while ((await classifyDeadLetters(db, 1_000)) !== 0);
}

function patterns(db: Database, within = unconfined, now = atSecond(60)) {
  return findDeadLetterPatterns(db, within, now.getTime());
}

describeOnEveryDatabase('R-OB10: patterns of dead letters', (db) => {
  it('are by type, code and normalised message, the most frequent first', async () => {
    await seedDead(db(), { error: error('no row 17'), endedAt: atSecond(1) });
    const newest = await seedDead(db(), {
      error: error('no row 4711', 'BROKEN', false),
      queue: 'other',
      endedAt: atSecond(9),
    });
    const rare = await seedDead(db(), { error: error('no row 17', 'LOST'), endedAt: atSecond(5) });
    await classifyAll(db());
    const [frequent, ...others] = await patterns(db());
    expect(frequent).toMatchObject({
      id: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
      taskType: 'chat',
      code: 'BROKEN',
      message: 'no row <n>',
      count: 2,
      queues: [
        { queue: 'default', count: 1 },
        { queue: 'other', count: 1 },
      ],
      queueCount: 2,
      firstSeen: atSecond(1),
      lastSeen: atSecond(9),
      retriableShare: 0.5,
      example: { taskId: newest, message: 'no row 4711' },
    });
    expect(others).toMatchObject([{ code: 'LOST', count: 1, example: { taskId: rare } }]);
  });

  it('have a trend over 24 hours', async () => {
    const hourMs = 3_600_000;
    const now = new Date(Math.floor(zero.getTime() / hourMs) * hourMs + hourMs / 2);
    const hoursAgo = (hours: number) => new Date(now.getTime() - hours * hourMs);
    for (const hours of [0, 2, 2, 23, 24, 30]) {
      await seedDead(db(), { endedAt: hoursAgo(hours) });
    }
    await classifyAll(db());
    const trend = async () => (await patterns(db(), unconfined, now))[0]?.hourly;
    const wanted = Array.from({ length: 24 }, () => 0);
    wanted.splice(23, 1, 1);
    wanted.splice(21, 1, 2);
    wanted.splice(0, 1, 1);
    expect(await trend()).toEqual(wanted);
    await purgePatterns(db(), never, 100, now);
    expect(await trend()).toEqual(wanted);
    const [left] = await db().query<{ oldest: Date }>(
      'select min(at) as oldest from sluice.dead_letter_hours',
    );
    expect(left?.oldest.getTime()).toBeGreaterThan(hoursAgo(26).getTime());
  });

  it('are counted from the statements that end, replay, cancel and purge', async () => {
    const [replayed, purged, member, left] = [
      newTask(),
      newTask(),
      newTask({ workflowId: 'w' }),
      newTask(),
    ];
    const tasks = [replayed, purged, member, left];
    await submitTasks(db(), tasks, zero);
    await wakeDue(db(), 10, zero);
    const claims = tasks.map(({ taskId }) => claimOf(taskId));
    const held = await claimTasks(db(), claims, 0, 30_000, zero);
    await endAttempts(db(), held.map(toDeadLetter), atSecond(1));
    const count = async () => {
      await classifyDeadLetters(db(), 100);
      return (await patterns(db())).map((pattern) => pattern.count);
    };
    expect(await count()).toEqual([4]);
    await replayTasks(db(), [replayed.taskId], {}, atSecond(2));
    expect(await count()).toEqual([3]);
    await purgeEnded(db(), [purged.taskId], { failed: 0, deadLetter: 0 }, atSecond(3));
    expect(await count()).toEqual([2]);
    await cancelTasks(db(), [member.taskId], atSecond(4));
    expect(await count()).toEqual([1]);
  });

  it('count a task once that was replayed and became a dead letter again', async () => {
    const id = await seedDead(db(), { error: error('first') });
    await classifyAll(db());
    await db().query(`update sluice.tasks set error = $2::json, ended_at = $3 where id = $1`, [
      id,
      JSON.stringify(error('second')),
      atSecond(7),
    ]);
    await classifyAll(db());
    expect(await patterns(db())).toMatchObject([{ message: 'second', count: 1 }]);
  });

  it('know what could be retried, whatever code, message and details say', async () => {
    const words = '"retriable":false,\\"retriable\\":';
    for (const retriable of [true, false]) {
      const details = { retriable: !retriable };
      await seedDead(db(), { error: { code: words, message: words, retriable, details } });
      const long = '\u0001'.repeat(10_000);
      await seedDead(db(), { error: { code: 'LONG', message: long, retriable, details } });
    }
    await classifyAll(db());
    expect(await patterns(db())).toMatchObject([
      { count: 2, retriableShare: 0.5 },
      { count: 2, retriableShare: 0.5 },
    ]);
  });

  it('are counted in small portions when their errors are large', async () => {
    const details = randomBytes(180 * 1024).toString('base64');
    for (let n = 0; n < 20; n += 1) {
      await seedDead(db(), { error: { ...error(`row ${n}`), details } });
    }
    await noteUncounted(db(), null, 100);
    const first = await classifyDeadLetters(db(), 100);
    expect(first).toBeGreaterThan(0);
    expect(first).toBeLessThan(12);
    await classifyAll(db());
    expect(await patterns(db())).toMatchObject([{ count: 20 }]);
  });

  it('are put right when rows were changed by hand or by an earlier version', async () => {
    const gone = await seedDead(db());
    await seedDead(db());
    await classifyAll(db());
    await db().query('delete from sluice.tasks where id = $1', [gone]);
    await seedDead(db(), { error: error('other') });
    expect(await patterns(db())).toMatchObject([{ count: 2 }]);
    await classifyAll(db());
    expect((await patterns(db())).map(({ count }) => count)).toEqual([1, 1]);
  });

  it('are listed and replayed by their id', async () => {
    const wanted = await seedDead(db(), { error: error('row 1') });
    const second = await seedDead(db(), { error: error('row 2') });
    await seedDead(db(), { error: error('else') });
    await classifyAll(db());
    const { id: pattern = '' } =
      (await patterns(db())).find(({ message }) => message === 'row <n>') ?? {};
    expect((await findDeadLetters(db(), { pattern }, 10)).taskIds).toEqual([wanted, second]);
    const page = await listDeadLetters(db(), { pattern }, { limit: 1 }, zero);
    expect(page).toMatchObject({ totalCount: 2, items: [{ taskId: second }] });
    const cursor = page.nextCursor ?? '';
    const rest = await listDeadLetters(db(), { pattern }, { cursor }, zero);
    expect(rest.items.map(({ taskId }) => taskId)).toEqual([wanted]);
    expect(await findDeadLetters(db(), { pattern, queue: 'other' }, 10)).toMatchObject({
      taskIds: [],
    });
  });

  it('show a confined key only what it reaches', async () => {
    await seedDead(db(), { queue: 'mine', endedAt: atSecond(5) });
    await seedDead(db(), { queue: 'others', endedAt: atSecond(1) });
    await seedDead(db(), { queue: 'others', error: error('secret') });
    await classifyAll(db());
    const within = { queues: ['mine*'], owner: null };
    const [pattern, ...rest] = await patterns(db(), within);
    expect(rest).toEqual([]);
    expect(pattern).toMatchObject({
      count: 1,
      queueCount: 1,
      queues: [{ queue: 'mine', count: 1 }],
      firstSeen: atSecond(5),
    });
    expect(pattern?.hourly.reduce((sum, n) => sum + n, 0)).toBe(1);
    expect(await patterns(db(), { queues: null, owner: 'a key' })).toEqual([]);
  });

  it('are new once: first seen survives the dead letters, for a bounded time', async () => {
    const id = await seedDead(db(), { endedAt: atSecond(1) });
    await classifyAll(db());
    expect(await countNewPatterns(db(), atSecond(0))).toBe(1);
    expect(await countNewPatterns(db(), atSecond(2))).toBe(0);
    await db().query('delete from sluice.tasks where id = $1', [id]);
    await classifyAll(db());
    expect(await patterns(db())).toEqual([]);
    await purgePatterns(db(), 90 * dayMs, 500, new Date(zero.getTime() + 89 * dayMs));
    await seedDead(db(), { endedAt: atSecond(50) });
    await classifyAll(db());
    expect(await patterns(db())).toMatchObject([
      { firstSeen: atSecond(1), lastSeen: atSecond(50) },
    ]);
    expect(await countNewPatterns(db(), atSecond(2))).toBe(0);
    await db().query('delete from sluice.tasks');
    await classifyAll(db());
    await purgePatterns(db(), 90 * dayMs, 500, new Date(zero.getTime() + 91 * dayMs));
    const left = await db().query('select from sluice.dead_letter_patterns');
    expect(left).toHaveLength(0);
  });

  it('are bounded, and what is beyond falls into one for each type and code', async () => {
    await db().query(
      `insert into sluice.tasks (id, queue, task_type, priority, status, created_at, eligible_at,
         ended_at, timeout_seconds, max_retries, error)
       select gen_random_uuid(), 'q', 't', 1, 'dead_letter', $1, $1, $1, 60, 3,
         ('{"code":"C","message":"' || repeat('a', n) || '","retriable":true}')::json
       from generate_series(1, 199) n`,
      [zero],
    );
    await db().query(
      `insert into sluice.dead_letter_patterns (id, task_type, code, message, first_seen, last_seen)
       select 'seeded ' || n, 't', 'C', 'seeded ' || n, $1, $1 from generate_series(1, $2::int) n`,
      [zero, maxPatterns - 100],
    );
    await classifyAll(db());
    const shown = await patterns(db());
    const overflow = shown.filter(({ message }) => message === null);
    expect(shown).toHaveLength(101);
    expect(overflow).toMatchObject([{ taskType: 't', code: 'C' }]);
    expect(shown.reduce((sum, { count }) => sum + count, 0)).toBe(199);
    await purgePatterns(db(), never, 500, zero);
    const [left] = await db().query<{ count: number }>(
      'select count(*)::int as count from sluice.dead_letter_patterns',
    );
    expect(left).toEqual({ count: 500 + 101 });
  });
});

describeOnPostgres('R-OB10: patterns of dead letters', (postgres) => {
  it('are classified by one server at a time, and counted once', async () => {
    const [one, other] = [await postgres().open(), await postgres().open()];
    for (let n = 0; n < 20; n += 1) await seedDead(one, { error: error(`row ${n}`) });
    await noteUncounted(one, null, 100);
    await noteUncounted(other, null, 100);
    await Promise.all(
      Array.from({ length: 20 }, (_, n) => classifyDeadLetters(n % 2 === 0 ? one : other, 3)),
    );
    await classifyAll(one);
    expect(await patterns(one)).toMatchObject([{ count: 20 }]);
  });

  it('that come back while absent ones are purged stay', async () => {
    const [one, other] = [await postgres().openPatient(), await postgres().openPatient()];
    const again = () => seedDead(one, { error: error('it broke'), endedAt: atSecond(1) });
    await again();
    await classifyAll(one);
    await one.run('delete from sluice.tasks');
    await classifyAll(one);
    const taskId = await again();
    await noteUncounted(one, null, 100);
    // Holds up the classification when it has written the pattern.
    const [inserted, blocked] = [new Gate(), new Gate()];
    const blocking = postgres().db.transaction(async (tx) => {
      await tx.query(
        `insert into sluice.dead_letters (task_id, pattern, queue, owner, ended_at, retriable)
         values ($1::uuid, '', '', '', now(), true)`,
        [taskId],
      );
      inserted.open();
      await blocked.passed;
      throw new Error('rolled back');
    });
    blocking.catch(() => undefined);
    await inserted.passed;
    const classifying = classifyDeadLetters(one, 100);
    await waiters(1);
    const purging = purgePatterns(other, 0, 0, atSecond(60));
    await Promise.race([purging, waiters(2)]);
    blocked.open();
    await Promise.all([classifying, purging, expect(blocking).rejects.toThrow('rolled back')]);
    expect(await patterns(one)).toMatchObject([{ message: 'it broke', count: 1 }]);
  });

  it('are classified while claims pass, and a server that hangs in it loses its turn', async () => {
    const { db } = postgres();
    const [one, other] = [await postgres().openPatient(), await postgres().open()];
    const { taskId } = await submitOne(db);
    await seedDead(db);
    await noteUncounted(db, null, 100);
    // Holds up the classification in the middle of its transaction.
    const [locked, blocked] = [new Gate(), new Gate()];
    const blocking = db.transaction(async (tx) => {
      await tx.run('lock table sluice.dead_letter_patterns in access exclusive mode');
      locked.open();
      await blocked.passed;
    });
    await locked.passed;
    let patience: unknown;
    const watched: Database = {
      ...one,
      transaction: (work) =>
        one.transaction(async (tx) => {
          const answer = await work(tx);
          [patience] = await tx.query('show idle_in_transaction_session_timeout');
          return answer;
        }),
    };
    const classifying = classifyDeadLetters(watched, 100);
    await waiters(1);
    expect(await classifyDeadLetters(other, 100)).toBeNull();
    expect(await claimTasks(other, [claimOf(taskId)], 0, 30_000, null)).toHaveLength(1);
    blocked.open();
    expect(await classifying).toBe(1);
    expect(patience).toEqual({ idle_in_transaction_session_timeout: '5s' });
    await blocking;
  });

  async function waiters(count: number): Promise<void> {
    await until(`${count} to wait for a lock`, async () => {
      const rows = await postgres().db.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      return rows.length >= count;
    });
  }
});
