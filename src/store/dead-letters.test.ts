import { expect, it } from 'vitest';

import { atSecond, seedTask, zero } from '../../test/store/seed.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import type { DeadLetterFilter } from '../protocol/dead-letters-api.js';
import { findDeadLetters, listDeadLetters } from './dead-letters.js';

const status = 'dead_letter';
/** Neither is text to Postgres, both are strings to a worker. */
const unspeakable = 'nul \u0000 and half a pair \ud800';

function error(code: string, retriable = true) {
  return { code, message: unspeakable, retriable };
}

describeOnEveryDatabase('dead letters', (db) => {
  it('R-RE5: are listed newest first, with how many there are', async () => {
    const seeds = [
      await seedTask(db(), { status }),
      await seedTask(db(), { status }),
      await seedTask(db(), { status }),
    ];
    await seedTask(db(), { status: 'failed' });
    await seedTask(db());
    const newestFirst = seeds.map((seed) => seed.taskId).reverse();
    const first = await listDeadLetters(db(), {}, { limit: 2 }, zero);
    expect(first.totalCount).toBe(3);
    expect(first.items.map((task) => task.taskId)).toEqual(newestFirst.slice(0, 2));
    const cursor = first.nextCursor ?? '';
    const rest = await listDeadLetters(db(), {}, { limit: 2, cursor }, zero);
    expect(rest.items.map((task) => task.taskId)).toEqual(newestFirst.slice(2));
    expect(rest).toMatchObject({ nextCursor: null, totalCount: 3 });
    expect(rest.items[0]).toMatchObject({ error: { code: 'BROKEN' } });
  });

  it('R-RE5: are found by queue, type and code', async () => {
    await seedTask(db(), { status });
    const odd = 'a "quoted" \\ code';
    const seed = { status, queue: 'q', taskType: 't', error: error(odd) } as const;
    const { taskId } = await seedTask(db(), seed);
    const filters: DeadLetterFilter[] = [{ queue: 'q' }, { taskType: 't' }, { code: odd }];
    for (const filter of filters) {
      expect(await findDeadLetters(db(), filter, 10)).toEqual({ taskIds: [taskId], next: null });
      expect(await listDeadLetters(db(), filter, {}, zero)).toMatchObject({
        totalCount: 1,
        items: [{ taskId, error: { code: odd, message: unspeakable } }],
      });
    }
    expect((await findDeadLetters(db(), { code: 'OTHER' }, 10)).taskIds).toEqual([]);
    expect((await findDeadLetters(db(), {}, 1)).taskIds).toHaveLength(1);
    expect(await listDeadLetters(db(), { code: 'OTHER' }, {}, zero)).toEqual({
      items: [],
      nextCursor: null,
      totalCount: 0,
    });
  });

  it('R-RE5: are found by when they ended, and page by page', async () => {
    const seeds = [
      await seedTask(db(), { status, endedAt: atSecond(1) }),
      await seedTask(db(), { status, endedAt: atSecond(2) }),
      await seedTask(db(), { status, endedAt: atSecond(3) }),
    ];
    const [first, second, third] = seeds.map((seed) => seed.taskId);
    const between = { since: atSecond(2), until: atSecond(3) };
    expect((await findDeadLetters(db(), between, 10)).taskIds).toEqual([second]);
    expect(await listDeadLetters(db(), between, {}, zero)).toMatchObject({ totalCount: 1 });
    expect(await findDeadLetters(db(), {}, 1)).toEqual({ taskIds: [first], next: first });
    expect((await findDeadLetters(db(), {}, 10, second)).taskIds).toEqual([third]);
  });
});
