import { describe, expect, it } from 'vitest';

import type { TaskId } from '../domain/ids.js';
import type { Refused } from '../store/new-task.js';
import { until } from '../../test/support/until.js';
import { ReachedCeilings } from './reached-ceilings.js';

const taskId = '01a1e33b-11b8-71a9-8487-57eb16c9a923' as TaskId;

function refusedIn(scope: string): Refused {
  return { kind: 'refused', taskId, reached: { scope, limit: 10, active: 10 }, ended: 0 };
}

describe('ceilings that were reached a moment ago', () => {
  it('R-AD1: count for their own priority, in their own scope', () => {
    const reached = new ReachedCeilings();
    reached.note('low', refusedIn(''));
    reached.note('high', refusedIn('chat'));
    expect(reached.find('chat', 'low')).toEqual(refusedIn(''));
    expect(reached.find('chat', 'high')).toEqual(refusedIn('chat'));
    expect(reached.find('mail', 'high')).toBeNull();
    expect(reached.find('mail', 'medium')).toBeNull();
  });

  it('R-AD1: are forgotten when a place got free here, and soon in any case', async () => {
    const reached = new ReachedCeilings();
    reached.note('low', refusedIn(''));
    reached.forget();
    expect(reached.find('chat', 'low')).toBeNull();
    reached.note('low', refusedIn(''));
    await until('it to be forgotten', () => reached.find('chat', 'low') === null);
  });
});
