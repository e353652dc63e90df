import { expect, it } from 'vitest';

import { atSecond, seedTask } from '../../test/store/seed.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import { findWindows, measureStretches } from './line-stretches.js';
import type { LinePosition } from './task-row.js';

const start: LinePosition = { eligibleAtMs: Number.NEGATIVE_INFINITY, seq: 0 };
const chat = { queue: 'q', taskType: 'chat', capabilities: [] };
const window = { lane: chat, priority: 'low' } as const;

describeOnEveryDatabase('stretches of the line', (db) => {
  const seed = async (count: number, more: Partial<Parameters<typeof seedTask>[1]> = {}) => {
    for (let n = 0; n < count; n++) {
      const eligibleAt = atSecond(n - 100);
      await seedTask(db(), { queue: 'q', taskType: 'chat', priority: 'low', eligibleAt, ...more });
    }
  };
  const measure = async (from: LinePosition, to: LinePosition | null, marks = 10) => {
    const bounds = { marks, markEvery: 3 };
    const [measured] = await measureStretches(db(), [{ window, from, to }], bounds);
    if (measured === undefined) throw new Error('nothing was measured');
    return measured;
  };

  it('R-OB1: counts the line of one window, with a mark for every so many', async () => {
    await seed(7);
    await seed(1, { priority: 'high' });
    await seed(1, { taskType: 'other' });
    await seed(1, { status: 'executing' });
    const { count, marks, isCut, lastEligibleAtMs } = await measure(start, null);
    expect({ count, isCut, last: lastEligibleAtMs }).toEqual({
      count: 7,
      isCut: false,
      last: atSecond(-94).getTime(),
    });
    const seconds = marks.map(({ eligibleAtMs }) => eligibleAtMs);
    expect(seconds).toEqual([-100, -97, -94].map((second) => atSecond(second).getTime()));
    const [first = start, second = start] = marks;
    expect((await measure(first, second)).count).toBe(3);
    expect((await measure(second, null)).count).toBe(4);
  });

  it('R-OB1: reads no more than it is asked to, and tells where it goes on', async () => {
    await seed(7);
    const { count, marks, isCut } = await measure(start, null, 2);
    expect([count, marks.length, isCut]).toEqual([6, 3, true]);
    const rest = await measure(marks[2] ?? start, null, 2);
    expect([rest.count, rest.isCut]).toEqual([1, false]);
  });

  it('answers in order, for windows without tasks too', async () => {
    await seed(2);
    const none = { lane: { ...chat, queue: 'none' }, priority: 'low' } as const;
    const stretches = [none, window].map((one) => ({ window: one, from: start, to: null }));
    const measured = await measureStretches(db(), stretches, { marks: 1, markEvery: 3 });
    expect(measured.map(({ count }) => count)).toEqual([0, 2]);
  });

  it('finds the windows that have a line', async () => {
    await seed(2);
    await seed(1, { priority: 'high' });
    await seed(1, { queue: 'p', taskType: 'other' });
    const found = await findWindows(db(), 10);
    expect(found.map(({ lane, priority }) => [lane.queue, lane.taskType, priority])).toEqual([
      ['p', 'other', 'low'],
      ['q', 'chat', 'high'],
      ['q', 'chat', 'low'],
    ]);
    expect(await findWindows(db(), 2)).toHaveLength(2);
  });
});
