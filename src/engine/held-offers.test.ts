import { beforeEach, describe, expect, it, vi } from 'vitest';

import type { TaskId } from '../domain/ids.js';
import type { ReadyRow } from '../store/task-row.js';
import { HeldOffers } from './held-offers.js';

function row(name: string): ReadyRow {
  const lane = { queue: 'q', taskType: 't', capabilities: [] };
  const taskId = name as TaskId;
  return { taskId, lane, priority: 'medium', ageMs: 0, eligibleAtMs: 0, seq: 0, cost: {} };
}

describe('offers that are held', () => {
  let nowMs = 0;
  beforeEach(() => {
    nowMs = 0;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    return () => {
      clock.mockRestore();
    };
  });

  const namesDue = (held: HeldOffers) => held.due().map(({ taskId }) => taskId);

  it('are offered again in time, however many others come to be held', () => {
    const held = new HeldOffers();
    held.settle([row('first')], ['held']);
    for (let count = 1; count <= 9; count++) {
      nowMs += 10;
      held.settle([row(`other ${String(count)}`)], ['held']);
    }
    nowMs += 10;
    expect(namesDue(held)).toContain('first');
    held.settle([row('first')], ['held']);
    expect(held.nextMs).toBe(nowMs + 100);
  });

  it('are given up after a second', () => {
    const held = new HeldOffers();
    held.settle([row('a')], ['held']);
    nowMs = 1_000;
    const [again] = held.due();
    expect(again).toMatchObject({ taskId: 'a', ageMs: 1_000 });
    held.settle([row('a')], ['held']);
    nowMs = 5_000;
    expect(namesDue(held)).toEqual([]);
    expect(held.nextMs).toBe(Number.POSITIVE_INFINITY);
  });

  it('are forgotten beyond ten thousand, and when they are taken', () => {
    const held = new HeldOffers();
    const rows = Array.from({ length: 10_500 }, (_, index) => row(String(index)));
    held.settle(
      rows,
      rows.map(() => 'held'),
    );
    nowMs = 100;
    expect(held.due()).toHaveLength(10_000);
    held.settle([row('0'), row('1')], ['accepted', 'held']);
    nowMs = 200;
    const due = namesDue(held);
    expect(due).toHaveLength(9_999);
    expect(due).toContain('1');
  });
});
