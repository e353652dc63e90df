import { expect, it } from 'vitest';

import { killWithTasks } from '../../lab/recovery/scenarios/killed-worker.js';
import { startTestFleet } from './test-fleet.js';

it('R-RE1: a worker killed with 500 tasks: all run elsewhere, each at the cost of one retry', async () => {
  // A lease that a busy machine does not make the other one lose.
  const fleet = await startTestFleet({ heartbeatIntervalMs: 1_000, leaseMs: 8_000 });
  const length = 500;
  const { elsewhere, completed, left, leastRetries, mostRetries, mostPastAttempts } =
    await killWithTasks(fleet, length);
  expect({ elsewhere, completed, left }).toEqual({ elsewhere: length, completed: length, left: 0 });
  expect({ leastRetries, mostRetries, mostPastAttempts }).toEqual({
    leastRetries: 1,
    mostRetries: 1,
    mostPastAttempts: 1,
  });
});
