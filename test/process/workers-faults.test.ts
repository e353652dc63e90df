import { expect, it } from 'vitest';

import { freeze } from '../../lab/workers/scenarios/frozen.js';
import { runOutage } from '../../lab/workers/scenarios/outage.js';
import { startTestFleet } from './test-fleet.js';

it('R-WO12: a worker frozen beyond its lease lets go, and its late result is refused', async () => {
  // A busy machine may take long from the begin to the freezing, and keep the other one waiting.
  const fleet = await startTestFleet({ heartbeatIntervalMs: 1_000, leaseMs: 8_000 });
  const { refusals, stoppedWhy, tasks } = await freeze(fleet, 4_000);
  expect(refusals).toHaveLength(1);
  expect(stoppedWhy).toBe('lease_lost');
  const elsewhere = { result: 'other', attempts: ['frozen lapsed', 'other succeeded'] };
  expect(tasks).toEqual([elsewhere, elsewhere]);
});

it('R-WO9: nothing that ended while the server was away runs again, and no result is lost', async () => {
  const fleet = await startTestFleet();
  const length = 1_000;
  // Long enough for many to be running still when the first quarter is found to have ended.
  const run = await runOutage(fleet, { length, stepMs: 1_000, outageMs: 3_000 });
  const { ended, completed, runAgain, endedMeanwhile } = run;
  expect(endedMeanwhile).toBeGreaterThan(0);
  expect({ ended, completed, runAgain }).toEqual({ ended: length, completed: length, runAgain: 0 });
});
