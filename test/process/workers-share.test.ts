import { expect, it } from 'vitest';

import { shareOut, startEqualWorkers } from '../../lab/workers/scenarios/sharing.js';
import { runKilledWorkflow } from '../../lab/workers/scenarios/workflow-kills.js';
import { staysWithin } from '../support/stays-within.js';
import { startTestFleet } from './test-fleet.js';

it('R-WO2: 10 tasks of a workflow run in order and one at a time, though 4 of their workers are killed', async () => {
  // A lease that a busy machine does not make a living worker lose.
  const fleet = await startTestFleet({ heartbeatIntervalMs: 1_000, leaseMs: 6_000 });
  const { taskIds, order, mostAtOnce, completed } = await runKilledWorkflow(fleet);
  expect(order).toEqual(taskIds);
  expect(mostAtOnce).toBe(1);
  expect(completed).toBe(10);
});

it('R-WO4: 3 equal workers share evenly', async () => {
  const fleet = await startTestFleet();
  await startEqualWorkers(fleet);
  let rounds = 0;
  const share = async () => {
    rounds += 1;
    const { shares } = await shareOut(fleet, `shared-${rounds}`, 600);
    expect([...shares.keys()].toSorted()).toEqual(['a', 'b', 'c']);
    return Math.max(...[...shares.values()].map((part) => Math.abs(part - 1 / 3)));
  };
  // The lab holds it to 5 % of more tasks; here others may take a core from one of them.
  expect(await staysWithin(0.15, share)).toBe(true);
});
