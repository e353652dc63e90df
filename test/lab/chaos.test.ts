import { expect, inject, it } from 'vitest';

import { runChaos } from '../../lab/chaos/run.js';

it('R-RE8: servers, workers, Redis and Postgres die, freeze and lose each other, and nothing is broken', async () => {
  if (inject('distIsStale')) throw new Error('dist is older than src: npm run build');
  const { verdict, history, schedule } = await runChaos({
    engine: 'postgres',
    seed: 1,
    durationMs: 8_000,
    faults: 15,
    durable: false,
    say: () => undefined,
  });
  expect(verdict.findings).toEqual([]);
  expect(new Set(schedule.map(({ kind }) => kind)).size).toBe(15);
  expect(history.faults).toHaveLength(schedule.length);
  expect(history.acknowledged.length).toBeGreaterThan(20);
});
