import { expect, it } from 'vitest';

import { atSecond, seedTask } from '../../test/store/seed.js';
import { describeOnEveryDatabase } from '../../test/store/support.js';
import { lineStart } from '../ready/left-line.js';
import type { Position } from '../ready/ready-queue.js';
import { LeftCounts } from './left-counts.js';

const window = {
  lane: { queue: 'q', taskType: 'chat', capabilities: [] },
  priority: 'low',
} as const;

describeOnEveryDatabase('tasks that are in Postgres alone', (db) => {
  let nextSecond = 0;
  const submit = async (count: number) => {
    for (let n = 0; n < count; n++) {
      nextSecond += 1;
      const eligibleAt = atSecond(nextSecond);
      await seedTask(db(), { queue: 'q', taskType: 'chat', priority: 'low', eligibleAt });
    }
  };
  const positions = async (): Promise<Position[]> => {
    const rows = await db().query<{ ms: number; seq: number }>(
      `select date_part('epoch', eligible_at) * 1000 as ms, seq from sluice.tasks
       where status = 'queued' order by eligible_at, seq`,
    );
    return rows.map(({ ms, seq }) => ({ eligibleAtMs: ms, seq }));
  };
  const open = (tasksInRound = 1_000) =>
    new LeftCounts(db(), { segmentSize: 3, segmentsAtOnce: 2, tasksInRound });
  const total = (counts: LeftCounts) =>
    counts.segmentsOf(window).reduce((sum, { count }) => sum + count, 0);

  it('R-OB1: follow the line as it is fed at its head and grows at its tail', async () => {
    const counts = open();
    await submit(20);
    for (const fed of [0, 1, 2, 5, 0, 7, 40]) {
      const line = await positions();
      const from = line[fed] ?? { eligibleAtMs: atSecond(9_999).getTime(), seq: 0 };
      expect(await counts.refresh([{ window, from }])).toBe(true);
      expect(total(counts)).toBe(Math.max(0, line.length - fed));
      await submit(fed);
    }
    const line = await positions();
    await counts.refresh([{ window, from: lineStart }]);
    expect(total(counts)).toBe(line.length);
    // From wherever it is counted, segments do not become more.
    const { length } = counts.segmentsOf(window);
    for (let n = 0; n < 5; n++) await counts.refresh([{ window, from: lineStart }]);
    expect(counts.segmentsOf(window)).toHaveLength(length);
  });

  it('R-OB1: find out about tasks that left the middle of the line', async () => {
    const counts = open();
    await submit(30);
    await counts.refresh([{ window, from: lineStart }]);
    await db().run(`delete from sluice.tasks where seq in (
      select seq from sluice.tasks order by seq offset 14 limit 5
    )`);
    for (let round = 0; round < 10; round++) await counts.refresh([{ window, from: lineStart }]);
    expect(total(counts)).toBe(25);
  });

  it('R-OB1: a round is bounded, and the count a lower bound until the end is reached', async () => {
    const counts = open(12);
    await submit(30);
    const seen: number[] = [];
    for (let isWhole = false; !isWhole; seen.push(total(counts))) {
      isWhole = await counts.refresh([{ window, from: lineStart }]);
    }
    expect(seen[0]).toBeLessThanOrEqual(12);
    expect(seen.length).toBeGreaterThan(1);
    expect(seen.at(-1)).toBe(30);
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  });

  it('forget a line that is no longer left', async () => {
    const counts = open();
    await submit(3);
    await counts.refresh([{ window, from: lineStart }]);
    await counts.refresh([]);
    expect(total(counts)).toBe(0);
  });
});
