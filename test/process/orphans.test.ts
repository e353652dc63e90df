import { expect, it } from 'vitest';

import { killWithTasks } from '../../lab/recovery/scenarios/killed-worker.js';
import { startTestFleet } from './test-fleet.js';

it('R-RE1: a worker killed with 500 tasks: all run elsewhere, each at the cost of one retry', async () => {
  const fleet = await startTestFleet({ heartbeatIntervalMs: 700, leaseMs: 3_000 });
  const length = 500;
  const { elsewhere, completed, left, leastRetries, mostRetries, mostPastAttempts } =
    await killWithTasks(fleet, length);
  expect({ elsewhere, completed, left }).toEqual({ elsewhere: length, completed: length, left: 0 });
  expect({ leastRetries, mostRetries, mostPastAttempts }).toEqual({
    leastRetries: 1,
    mostRetries: 1,
    mostPastAttempts: 1,
  });
}, 180_000);
