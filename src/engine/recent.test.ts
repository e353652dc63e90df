import { describe, expect, it } from 'vitest';

import { IdSource, type TaskId } from '../domain/ids.js';
import { Recent } from './recent.js';

const ids = new IdSource();
const newId = () => ids.nextTaskId(1_000);

describe('what was told a moment ago', () => {
  it('R-CH8: is known once', () => {
    const recent = new Recent<TaskId, string>(100, () => 1);
    const taskId = newId();
    recent.add(taskId, '{"a":1}');
    expect(recent.take(taskId)).toBe('{"a":1}');
    expect(recent.take(taskId)).toBeNull();
  });

  it('R-CH8: never takes up more than it may, and the oldest goes first', () => {
    const recent = new Recent<TaskId, string>(20, () => 1);
    const taskIds = Array.from({ length: 50 }, newId);
    for (const taskId of taskIds) recent.add(taskId, 'x');
    const known = taskIds.filter((taskId) => recent.take(taskId) !== null);
    expect(known).toEqual(taskIds.slice(-20));
  });

  it('R-CH8: one that is larger than all there is room for is not kept, and pushes nothing out', () => {
    const recent = new Recent<TaskId, string>(10, ({ length }) => length);
    const [small, large] = [newId(), newId()];
    recent.add(small, 'small');
    recent.add(large, 'larger');
    expect(recent.take(large)).toBeNull();
    expect(recent.take(small)).toBe('small');
  });

  it('R-CH8: what was taken makes room', () => {
    const recent = new Recent<TaskId, string>(20, () => 1);
    const first = newId();
    recent.add(first, 'first');
    for (let n = 0; n < 100; n += 1) {
      const passing = newId();
      recent.add(passing, 'x');
      recent.take(passing);
    }
    expect(recent.take(first)).toBe('first');
  });

  it('R-CH8: what is told twice takes up room once', () => {
    const recent = new Recent<TaskId, string>(20, () => 1);
    const taskId = newId();
    for (let n = 0; n < 5; n += 1) recent.add(taskId, 'x');
    expect(recent.room).toBe(9);
    expect(recent.take(taskId)).toBe('x');
    expect(recent.room).toBe(10);
  });
});
