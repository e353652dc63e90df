import { expect, it } from 'vitest';

import { seedBulk, seedTask, zero, type Seeded } from '../../test/store/seed.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import { cancelTasks } from './cancel-tasks.js';
import { listTasks } from './list-tasks.js';
import { onServer, searchBudgetOf, searchText } from './search-text.js';
import { lastTaskId, maxScannedRows } from './task-walk.js';

describeOnEveryDatabase('searchText', (db) => {
  const search = (text: string, limit = 10, before = lastTaskId) =>
    searchText(db(), {}, { text, limit, before }, searchBudgetOf(db()));

  it('R-OB4: finds a plain part of the parameters, among the living and in history', async () => {
    const living = await seedTask(db(), { parameters: { prompt: 'Summarise 100 % of it' } });
    const ended = await seedTask(db(), { parameters: { prompt: 'a_b "quoted" Größe' } });
    await cancelTasks(db(), [ended.taskId], zero);
    await seedTask(db(), { parameters: { prompt: 'nothing' } });
    const found = async (text: string) => (await search(text)).taskIds;
    expect(await found('prompt')).toHaveLength(3);
    expect(await found('100 %')).toEqual([living.taskId]);
    expect(await found('Größe')).toEqual([ended.taskId]);
    expect(await found(String.raw`\"quoted\"`)).toEqual([ended.taskId]);
    // No pattern: these stand for nothing but themselves.
    for (const text of ['1%it', 'a.b', 'axb', 'S.*e', '%', '100 _', 'summarise']) {
      expect([text, await found(text)]).toEqual([text, text === '%' ? [living.taskId] : []]);
    }
    const { taskIds } = await searchText(
      db(),
      { status: 'cancelled' },
      { text: 'prompt', limit: 10, before: lastTaskId },
      onServer,
    );
    expect(taskIds).toEqual([ended.taskId]);
  });

  it('R-OB4: goes on where it stopped, newest first, and ends', async () => {
    const seeds: Seeded[] = [];
    for (let n = 0; n < 120; n += 1) {
      seeds.push(await seedTask(db(), { parameters: { word: n % 40 === 0 ? 'needle' : 'hay' } }));
    }
    const needles = [80, 40, 0].map((n) => seeds[n]?.taskId);
    const first = await search('needle', 2);
    expect(first).toEqual({ taskIds: needles.slice(0, 2), next: needles[1] });
    expect(await search('needle', 2, first.next ?? lastTaskId)).toEqual({
      taskIds: needles.slice(2),
      next: null,
    });
  });

  it('R-OB4: reads a bounded number of bytes, and says how far it came', async () => {
    const needle = await seedTask(db(), { parameters: { word: 'needle' } });
    const large = 'x'.repeat(250_000);
    const { bytes, tasksInBlock } = searchBudgetOf(db());
    const count = Math.ceil(bytes / large.length) + tasksInBlock;
    for (let n = 0; n < count; n += 1) await seedTask(db(), { parameters: { large } });
    const first = await search('needle');
    expect(first.taskIds).toEqual([]);
    if (first.next === null) throw new Error('there is more to read');
    expect(await search('needle', 10, first.next)).toEqual({
      taskIds: [needle.taskId],
      next: null,
    });
  });

  it('R-OB4: looks at a bounded number of tasks; the list says down to when', async () => {
    const needle = await seedTask(db(), { parameters: { word: 'needle' } });
    await seedBulk(db(), maxScannedRows);
    const first = await listTasks(db(), { text: 'needle' }, { limit: 5 }, zero);
    expect(first.items).toEqual([]);
    expect(first.searchedBackTo).toBeInstanceOf(Date);
    const cursor = first.nextCursor ?? '';
    const include = ['parameters'] as const;
    const rest = await listTasks(db(), { text: 'needle' }, { limit: 5, cursor, include }, zero);
    expect(rest).toMatchObject({
      items: [{ taskId: needle.taskId, parameters: { word: 'needle' } }],
      nextCursor: null,
      searchedBackTo: null,
    });
  });
});
