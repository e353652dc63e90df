import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';

import type { Lease, WorkerId } from '../domain/ids.js';
import { RecentWork } from './recent-work.js';

function attemptOf(workerId: WorkerId) {
  const lane = { queue: 'default', taskType: 'noop', capabilities: [] };
  return { lane, priority: 'medium', cost: {}, workerId, attempt: 1, startedAtMs: 0 } as const;
}

it('R-WO9: an attempt is known to the worker that claimed it, and not to one that took it over', () => {
  const recent = new RecentWork();
  const [worker, again] = [randomUUID() as WorkerId, randomUUID() as WorkerId];
  const [kept, adopted] = [randomUUID() as Lease, randomUUID() as Lease];
  recent.claimed(kept, attemptOf(worker));
  recent.claimed(adopted, attemptOf(worker));
  expect(recent.takeAttempt(kept, worker)).toEqual(attemptOf(worker));
  expect(recent.takeAttempt(kept, worker)).toBeNull();
  expect(recent.takeAttempt(adopted, again)).toBeNull();
});
