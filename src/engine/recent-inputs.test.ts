import { describe, expect, it } from 'vitest';

import { IdSource } from '../domain/ids.js';
import { RecentInputs } from './recent-inputs.js';

const ids = new IdSource();
const newId = () => ids.nextTaskId(1_000);

describe('parameters of what was submitted a moment ago', () => {
  it('R-CH8: are known once', () => {
    const inputs = new RecentInputs();
    const taskId = newId();
    inputs.add(taskId, '{"a":1}');
    expect(inputs.take(taskId)).toBe('{"a":1}');
    expect(inputs.take(taskId)).toBeNull();
  });

  it('R-CH8: never take up more than they may, and the oldest go first', () => {
    const inputs = new RecentInputs(4_200);
    const taskIds = Array.from({ length: 50 }, newId);
    for (const taskId of taskIds) inputs.add(taskId, 'x'.repeat(10));
    const known = taskIds.filter((taskId) => inputs.take(taskId) !== null);
    expect(known).toEqual(taskIds.slice(-20));
  });

  it('R-CH8: one that is larger than all there is room for is not kept, and pushes nothing out', () => {
    const inputs = new RecentInputs(500);
    const [small, large] = [newId(), newId()];
    inputs.add(small, 'x');
    inputs.add(large, 'x'.repeat(400));
    expect(inputs.take(large)).toBeNull();
    expect(inputs.take(small)).toBe('x');
  });
});
