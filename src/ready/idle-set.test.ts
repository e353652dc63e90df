import { describe, expect, it } from 'vitest';
import { IdleSet } from './idle-set.js';

describe('IdleSet', () => {
  it('forgets the half that was idle longest when it is full', () => {
    const forgotten: number[] = [];
    const idle = new IdleSet<number>(4, (item) => forgotten.push(item));
    for (const item of [1, 2, 3, 4]) idle.add(item);
    idle.add(1);
    expect(forgotten).toEqual([]);
    idle.add(5);
    expect(forgotten).toEqual([2, 3, 4]);
  });

  it('does not forget what is in use again', () => {
    const forgotten: number[] = [];
    const idle = new IdleSet<number>(2, (item) => forgotten.push(item));
    idle.add(1);
    idle.add(2);
    idle.delete(1);
    idle.add(3);
    idle.add(4);
    expect(forgotten).toEqual([2, 3]);
  });

  it('may be taken from while it forgets', () => {
    const forgotten: number[] = [];
    const idle = new IdleSet<number>(4, (item) => {
      forgotten.push(item);
      idle.delete(item + 1);
    });
    for (const item of [1, 2, 3, 4, 5]) idle.add(item);
    expect(forgotten).toEqual([1, 3]);
  });
});
