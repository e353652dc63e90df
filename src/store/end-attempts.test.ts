import { expect, it } from 'vitest';

import {
  backToPending,
  claimOne,
  completionOf,
  rowOf,
  runOne,
  toDeadLetter,
} from '../../test/store/lifecycle.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import type { Lease, TaskId } from '../domain/ids.js';
import { endAttempts } from './end-attempts.js';
import { wakeDue } from './feed-line.js';
import { findAttempts, findSettled } from './find-attempts.js';
import { completeTasks } from './finish-tasks.js';
import { recordProgress } from './start-tasks.js';

const now = new Date();
const later = (ms: number): Date => new Date(now.getTime() + ms);
const window = {
  lane: { queue: 'default', taskType: 'chat', capabilities: [] },
  priority: 'medium',
} as const;

describeOnEveryDatabase('endAttempts', (db) => {
  it('R-RE2: a failed attempt goes back for its backoff, and is kept', async () => {
    const held = await runOne(db(), { costJson: '{"tokens":5}', trace: 'a trace' }, {}, now);
    await recordProgress(db(), [{ ...held, percent: 50, message: 'half' }]);
    const failed = backToPending(held, { delayMs: 1_500, timeoutSeconds: 900 });
    expect(await endAttempts(db(), [failed], later(2_000))).toEqual([
      {
        taskId: held.taskId,
        lease: held.lease,
        queue: 'default',
        taskType: 'chat',
        priority: 'medium',
        cost: { tokens: 5 },
        workerId: held.workerId,
        workflowId: null,
        attempt: 1,
        trace: 'a trace',
        from: 'executing',
        runMs: 2_000,
        released: false,
        to: 'pending',
        window,
      },
    ]);
    const row = await rowOf(db(), held.taskId);
    expect(row).toMatchObject({
      status: 'pending',
      waits_for: 'time',
      run_at: later(3_500),
      eligible_at: now,
      lease: null,
      retry_count: 1,
      timeout_seconds: 900,
      progress_percent: null,
      progress_message: null,
      error: null,
    });
    expect(instantsOf(row)).toEqual([
      {
        attempt: 1,
        worker_id: held.workerId,
        lease: held.lease,
        queued_at: now,
        assigned_at: now,
        started_at: now,
        ended_at: later(2_000),
        outcome: 'failed',
        error: { code: 'BROKEN', message: 'it broke', retriable: true },
        became: 'pending',
        reason: null,
      },
    ]);
  });

  it('R-WO8: a release costs nothing and is due at once', async () => {
    const held = await runOne(db(), {}, { start: false }, now);
    const released = {
      ...backToPending(held, { costsRetry: false, countsAs: 'return' }),
      outcome: 'released',
      error: null,
    } as const;
    const [ended] = await endAttempts(db(), [released], later(10));
    expect(ended).toMatchObject({ from: 'assigned', to: 'pending', runMs: 10 });
    expect(await rowOf(db(), held.taskId)).toMatchObject({
      waits_for: 'time',
      run_at: later(10),
      retry_count: 0,
      returns: 1,
      deferrals: 0,
    });
  });

  it('R-RE9: a deferral counts as one and costs no retry', async () => {
    const held = await runOne(db());
    const deferred = backToPending(held, { delayMs: 1, costsRetry: false, countsAs: 'deferral' });
    await endAttempts(db(), [deferred], null);
    expect(await rowOf(db(), held.taskId)).toMatchObject({ deferrals: 1, retry_count: 0 });
  });

  it('R-RE5: a dead letter keeps its error and its reason', async () => {
    const held = await runOne(db(), {}, {}, now);
    const end = toDeadLetter(held);
    const message = 'nul \u0000, lone \ud800, "quoted" \\ and 日本語';
    const details = { retry_after_seconds: 1, nested: { 'key with spaces': [1, null] } };
    const error = { code: 'X', message, retriable: false, retryAfterSeconds: 3, details };
    const [ended] = await endAttempts(db(), [{ ...end, error }], later(5));
    expect(ended).toMatchObject({ to: 'dead_letter' });
    const stored = { code: 'X', message, retriable: false, retry_after_seconds: 3, details };
    const row = await rowOf(db(), held.taskId);
    expect(row).toMatchObject({
      status: 'dead_letter',
      waits_for: null,
      ended_at: later(5),
      error: stored,
      retry_count: 0,
      timeout_seconds: 600,
    });
    expect(instantsOf(row)).toMatchObject([
      { error: stored, became: 'dead_letter', reason: 'BROKEN is not retried' },
    ]);
  });

  it('ends of every kind go together, and a lost lease among them changes nothing', async () => {
    const held = [await runOne(db()), await runOne(db()), await runOne(db()), await runOne(db())];
    const [delayed, released, dead, lost] = held;
    if (!delayed || !released || !dead || !lost) throw new Error('not all run');
    const ended = await endAttempts(
      db(),
      [
        backToPending(delayed, { delayMs: 5 }),
        backToPending(released, { costsRetry: false }),
        toDeadLetter(dead),
        backToPending({ taskId: lost.taskId, lease: dead.lease }),
      ],
      null,
    );
    expect(ended.map(({ taskId, to }) => [taskId, to])).toEqual([
      [delayed.taskId, 'pending'],
      [released.taskId, 'pending'],
      [dead.taskId, 'dead_letter'],
    ]);
    expect(await rowOf(db(), lost.taskId)).toMatchObject({
      status: 'executing',
      lease: lost.lease,
    });
  });

  it('keeps the last 200 attempts', async () => {
    const held = await runOne(db());
    await db().query(
      `update sluice.tasks set attempt = 205,
         past_attempts = (select array_agg(json_build_object('attempt', n)) from generate_series(5, 204) n)`,
    );
    await endAttempts(db(), [backToPending(held)], null);
    const row = await rowOf(db(), held.taskId);
    const kept = row?.past_attempts as { attempt: number }[];
    expect(kept.map((past) => past.attempt)).toEqual(Array.from({ length: 200 }, (_, n) => n + 6));
  });
});

describeOnEveryDatabase('findAttempts', (db) => {
  it('answers for those whose lease is good', async () => {
    const held = await runOne(db(), { maxRetries: 4, timeoutSeconds: 60, costJson: '{"t":1}' });
    const other = await runOne(db());
    const stale = { taskId: other.taskId, lease: held.lease };
    expect(await findAttempts(db(), [stale, held])).toEqual([
      {
        taskId: held.taskId,
        taskType: 'chat',
        lease: held.lease,
        priority: 'medium',
        queue: 'default',
        retryCount: 0,
        maxRetries: 4,
        deferrals: 0,
        returns: 0,
        timeoutSeconds: 60,
        workerId: held.workerId,
        workflowId: null,
        status: 'executing',
        attempt: 1,
        begunAt: expect.any(Date) as Date,
        cost: { t: 1 },
      },
    ]);
  });
});

describeOnEveryDatabase('findSettled', (db) => {
  it('R-WO9: a report that is sent again is answered as the first time', async () => {
    const failed = await runOne(db());
    const error = { code: 'X', message: '\u0000', retriable: true };
    await endAttempts(db(), [{ ...backToPending(failed), error }], null);
    expect(await settled(failed.taskId, failed.lease)).toBe('pending');

    await wakeDue(db(), 10, null);
    const again = await claimOne(db(), failed.taskId);
    expect(await settled(again.taskId, again.lease)).toBeNull();
    await completeTasks(db(), [completionOf(again)], null);
    expect(await settled(again.taskId, again.lease)).toBe('completed');
    expect(await settled(failed.taskId, failed.lease)).toBe('pending');

    const dead = await runOne(db());
    await endAttempts(db(), [toDeadLetter(dead)], null);
    expect(await settled(dead.taskId, dead.lease)).toBe('dead_letter');
    expect(await settled(dead.taskId, again.lease)).toBeNull();
  });

  async function settled(taskId: TaskId, lease: Lease): Promise<unknown> {
    const [found] = await findSettled(db(), [{ taskId, lease }]);
    return found?.status ?? null;
  }
});

/** The past attempts with their instants as dates: the time zone they are written in varies. */
function instantsOf(row: Awaited<ReturnType<typeof rowOf>>): unknown {
  const past = row?.past_attempts as Record<string, unknown>[];
  const date = (value: unknown): unknown => (typeof value === 'string' ? new Date(value) : value);
  return past.map((attempt) => ({
    ...attempt,
    queued_at: date(attempt.queued_at),
    assigned_at: date(attempt.assigned_at),
    started_at: date(attempt.started_at),
    ended_at: date(attempt.ended_at),
  }));
}
