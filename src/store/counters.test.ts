import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import { counterLength, counterPositions, countOf, type CounterName } from '../domain/counters.js';
import {
  addCounts,
  allQueuesName,
  findCounts,
  findCountsAge,
  findRecentCounts,
  purgeCounts,
  sumUpCounts,
  type CountedSlot,
  type CounterStep,
} from './counters.js';

const at = (time: string): Date => new Date(`2026-03-01T${time}Z`);
const dayMs = 24 * 3_600_000;

describeOnEveryDatabase('counters', (db) => {
  const add = (process: { id: string; sequence: number }, slots: readonly CountedSlot[]) =>
    addCounts(db(), process, slots, at('12:00:30'));
  const steps = async (): Promise<Record<string, number>> => {
    const rows = await db().query<{ step_seconds: CounterStep; rows: number }>(
      'select step_seconds, count(*)::integer as rows from sluice.counters group by 1',
    );
    return Object.fromEntries(rows.map((row) => [row.step_seconds, row.rows]));
  };
  const completedOf = async (queue: string, stepSeconds: number): Promise<number[]> => {
    const span = { fromMs: 0, toMs: at('23:59:59').getTime(), stepSeconds };
    const { pieces } = await findCounts(db(), queue, span);
    return pieces.map(({ counts }) => countOf(counts, 'completed'));
  };

  it('R-OB7: adds what several processes counted of one slot', async () => {
    await add(first(1), [slot('a', '12:00:05', { completed: 3, run_ms: 10.6 })]);
    await add(first(1), [slot('a', '12:00:05', { completed: 4, run_ms: 20 })]);
    await add(first(1), [slot('b', '12:00:05', { started: 5 })]);
    const recent = await findRecentCounts(db(), at('12:00:05').getTime());
    expect(Object.fromEntries(recent)).toEqual({
      a: { started: 0, completed: 7, failed: 0, runMs: 31 },
      b: { started: 5, completed: 0, failed: 0, runMs: 0 },
    });
    expect((await findRecentCounts(db(), at('12:00:10').getTime())).size).toBe(0);
  });

  it('R-OB7: a write that is sent again adds nothing', async () => {
    const process = first(1);
    const slots = [slot('a', '12:00:05', { completed: 3 })];
    await add(process, slots);
    await add(process, slots);
    expect(await completedOf('a', 60)).toEqual([3]);
    await add({ ...process, sequence: 2 }, slots);
    expect(await completedOf('a', 60)).toEqual([6]);
  });

  it('R-OB7: sums slots up to minutes and minutes up to hours, and loses nothing', async () => {
    const times = ['11:59:55', '12:00:00', '12:00:05', '12:00:55', '12:01:00', '13:00:00'];
    const slots = times.map((time) => slot('a', time, { completed: 1 }));
    await add(first(1), [...slots, slot(allQueuesName, '12:00:00', { completed: 6 })]);
    expect(await completedOf('a', 60)).toEqual([1, 3, 1, 1]);

    const old = { from: 5, to: 60, olderThanMs: 0 } as const;
    expect(await sumUpCounts(db(), { ...old, limit: 3 }, at('12:01:00'))).toBe(3);
    expect(await sumUpCounts(db(), { ...old, limit: 99 }, at('12:01:00'))).toBe(2);
    expect(await steps()).toEqual({ 5: 2, 60: 3 });
    expect(await completedOf('a', 60)).toEqual([1, 3, 1, 1]);
    expect(await completedOf('a', 3_600)).toEqual([1, 4, 1]);

    await sumUpCounts(db(), { ...old, limit: 99 }, at('14:00:00'));
    const hours = { from: 60, to: 3_600, olderThanMs: 0, limit: 99 } as const;
    await sumUpCounts(db(), hours, at('14:00:00'));
    expect(await steps()).toEqual({ 3600: 4 });
    expect(await completedOf('a', 3_600)).toEqual([1, 4, 1]);
    expect(await completedOf(allQueuesName, 3_600)).toEqual([6]);

    // A server that was frozen writes late: it is added to what was summed up.
    await add(first(2), [slot('a', '12:00:10', { completed: 10 })]);
    await sumUpCounts(db(), { ...old, limit: 99 }, at('14:00:00'));
    await sumUpCounts(db(), hours, at('14:00:00'));
    expect(await completedOf('a', 3_600)).toEqual([1, 14, 1]);
  });

  it('R-OB7: a sum beyond a bigint stands still, and nothing else does', async () => {
    const much = { tokens_reserved: 9e18, completed: 1 };
    for (const time of ['12:00:00', '12:00:05', '12:00:10']) {
      await add(first(1), [slot('a', time, much)]);
      await add(first(1), [slot('a', time, much)]);
    }
    const span = { fromMs: 0, toMs: at('23:59:59').getTime(), stepSeconds: 86_400 };
    const standsStill = async () => {
      const { pieces } = await findCounts(db(), 'a', span);
      return pieces.map(({ counts }) => countOf(counts, 'tokens_reserved') >= 4e18);
    };
    expect(await standsStill()).toEqual([true]);
    const sumUp = { from: 5, to: 60, olderThanMs: 0, limit: 100 } as const;
    expect(await sumUpCounts(db(), sumUp, at('13:00:00'))).toBe(3);
    expect(await standsStill()).toEqual([true]);
    expect(await completedOf('a', 60)).toEqual([6]);
  });

  it('R-OB7: says from which age on there are too many rows, and purges old hours', async () => {
    const queues = ['a', 'b', 'c', 'd'].map((name, n) => slot(name, `1${n}:00:00`, { started: 1 }));
    await add(first(1), queues);
    const now = at('14:00:00');
    await sumUpCounts(db(), { from: 5, to: 60, olderThanMs: 0, limit: 99 }, now);
    expect(await findCountsAge(db(), 60, 2, dayMs, now)).toBe(3 * 3_600_000);
    expect(await findCountsAge(db(), 60, 4, dayMs, now)).toBe(dayMs);
    await sumUpCounts(db(), { from: 60, to: 3_600, olderThanMs: 0, limit: 99 }, now);
    expect(await purgeCounts(db(), 90 * dayMs, 99, now)).toBe(0);
    const later = new Date(now.getTime() + 90 * dayMs - 2 * 3_600_000);
    expect(await purgeCounts(db(), 90 * dayMs, 99, later)).toBe(2);
    expect(await steps()).toEqual({ 3600: 2 });
  });
});

function first(sequence: number): { id: string; sequence: number } {
  return { id: randomUUID(), sequence };
}

function slot(
  queue: string,
  time: string,
  given: Partial<Record<CounterName, number>>,
): CountedSlot {
  const counts = new Float64Array(counterLength);
  for (const [name, count] of Object.entries(given)) {
    counts[counterPositions[name as CounterName]] = count;
  }
  return { queue, atMs: at(time).getTime(), counts };
}
