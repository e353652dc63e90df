import { expect, inject, it, onTestFinished } from 'vitest';

import { MortalFleet } from '../../lab/recovery/mortal-fleet.js';
import { goAway } from '../../lab/recovery/scenarios/long-outages.js';
import { takePostgresAway } from '../../lab/recovery/scenarios/postgres-away.js';

async function startMortalFleet(heartbeatIntervalMs: number, leaseMs: number) {
  if (inject('distIsStale')) throw new Error('dist is older than src: npm run build');
  const mortal = await MortalFleet.start(false, { heartbeatIntervalMs, leaseMs });
  onTestFinished(() => mortal[Symbol.asyncDispose]());
  return mortal;
}

it('R-RE8: Postgres killed under load: submits are told when to come back, nothing acknowledged is lost, all go on', async () => {
  const mortal = await startMortalFleet(2_000, 30_000);
  const run = await takePostgresAway(mortal, 3_000);
  expect(run.refused).toBeGreaterThan(0);
  expect(run.others).toEqual({});
  expect(run.acknowledgedAfter).toBeGreaterThan(0);
  const { lost, left, mostRetries, survivors } = run;
  expect({ lost, left, mostRetries, survivors }).toEqual({
    lost: 0,
    left: 0,
    mostRetries: 0,
    survivors: 3,
  });
});

// A lease that a busy machine does not lapse by itself. Three times in a row: test/integration/outages.test.ts
it('R-RE1: server and Postgres away for longer than a lease: no task lost a retry to it', async () => {
  const mortal = await startMortalFleet(1_000, 6_000);
  const length = 200;
  const run = await goAway(mortal, { length, awayMs: 7_000, outages: 1 });
  const { completed, left, mostRetries } = run;
  expect({ completed, left, mostRetries }).toEqual({ completed: length, left: 0, mostRetries: 0 });
});
