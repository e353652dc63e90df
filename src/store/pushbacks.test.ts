import { expect, it } from 'vitest';
import type { Pushback } from '../protocol/pushbacks-api.js';
import { newTaskId, newWorkerId } from '../../test/store/lifecycle.js';
import { atSecond } from '../../test/store/seed.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import { insertPushbacks, listPushbacks, purgePushbacks, trimPushbacks } from './pushbacks.js';

const dayMs = 24 * 3_600_000;

function pushback(second: number, change: Partial<Pushback> = {}): Pushback {
  return {
    at: atSecond(second),
    queue: 'gpt',
    taskId: newTaskId(),
    taskType: 'chat',
    workerId: newWorkerId(),
    code: 'RATE_LIMITED',
    message: 'slow "down", \\ {please}',
    retryAfterMs: 20_000,
    answers: 3,
    became: 'stopped',
    until: atSecond(second + 20),
    ...change,
  };
}

describeOnEveryDatabase('the ledger of pushbacks', (db) => {
  const secondsOf = async (queue = 'gpt') =>
    (await listPushbacks(db(), queue, { limit: 100 })).items.map(
      ({ at }) => (at.getTime() - atSecond(0).getTime()) / 1000,
    );

  it('R-RE9: lists them newest first, page by page, and takes a write that is sent again once', async () => {
    const rows = [1, 2, 3, 4].map((second) => pushback(second));
    const other = pushback(9, {
      queue: 'other',
      retryAfterMs: null,
      until: null,
      became: 'goes_on',
    });
    await insertPushbacks(db(), [...rows, other]);
    await insertPushbacks(db(), rows);
    const first = await listPushbacks(db(), 'gpt', { limit: 3 });
    expect(first.items).toEqual(rows.toReversed().slice(0, 3));
    const next = await listPushbacks(db(), 'gpt', { limit: 3, cursor: first.nextCursor ?? '' });
    expect(next).toEqual({ items: rows.slice(0, 1), nextCursor: null });
    expect((await listPushbacks(db(), 'other', {})).items).toEqual([other]);
    await expect(listPushbacks(db(), 'gpt', { cursor: 'eHl6' })).rejects.toThrow('cursor');
  });

  it('keeps the newest of each queue', async () => {
    const rows = [1, 2, 3, 4, 5].map((second) => pushback(second));
    await insertPushbacks(db(), [...rows, pushback(1, { queue: 'other' })]);
    await trimPushbacks(db(), ['gpt', 'other', 'none'], 2);
    expect([await secondsOf(), await secondsOf('other')]).toEqual([[5, 4], [1]]);
  });

  it('keeps them for a time, and no more than so many in all', async () => {
    const rows = [0, 1, 2, 3, 4, 5].map((second) => pushback(second));
    await insertPushbacks(db(), rows);
    const purge = (change: { maxRows?: number; limit?: number }, second: number) =>
      purgePushbacks(
        db(),
        { keptMs: 7 * dayMs, maxRows: 100, limit: 100, ...change },
        atSecond(second),
      );
    expect(await purge({}, 60)).toBe(0);
    expect(await purge({ limit: 1 }, 7 * 86_400 + 2)).toBe(1);
    expect(await purge({}, 7 * 86_400 + 2)).toBe(1);
    expect(await secondsOf()).toEqual([5, 4, 3, 2]);
    expect(await purge({ maxRows: 2 }, 60)).toBe(1);
    expect(await secondsOf()).toEqual([5, 4, 3]);
  });
});
