import { describe, expect, inject, it } from 'vitest';
import type { Case, CaseScenario } from '../../lab/case-study/case.js';
import { measure } from '../../lab/case-study/measures.js';
import { batch } from '../../lab/case-study/scenarios/batch.js';
import { limited } from '../../lab/case-study/scenarios/limited.js';
import { sluice } from '../../lab/case-study/scenarios/sluice.js';
import { spiral } from '../../lab/case-study/scenarios/spiral.js';
import { Progress } from '../../lab/shared/progress.js';

/** Small and fast: whether it works. How long it takes on this machine says nothing. */
const small = {
  seed: 1,
  timeScale: 60,
  fleet: { workers: 2, slots: 20 },
  progress: new Progress(),
};

describe('R-LA1: the case study in real processes', () => {
  it('runs the batch system as it is simulated, each task once', async () => {
    const { rans, numbers } = await run(batch, 60);
    expect(rans.map(({ task }) => task)).toEqual(Array.from({ length: 60 }, (_, n) => n));
    expect(numbers.calls).toBe(60);
    // A busy machine is late, and nobody is faster than the models.
    expect(numbers.ratio).toBeGreaterThan(0.95);
  });

  it('runs the same work with Sluice, each task once, not faster than the ideal', async () => {
    const { rans, numbers } = await run(sluice, 60);
    expect(rans.map(({ task }) => task)).toEqual(Array.from({ length: 60 }, (_, n) => n));
    expect(numbers.calls).toBe(60);
    expect(measure(rans).durationMs).toBeGreaterThan((numbers.idealMs ?? 0) * 0.95);
  });

  it('takes a minute and more for 21 calls of each model where 20 a minute are allowed', async () => {
    const { rans, numbers } = await run(limited, 210);
    expect(rans).toHaveLength(210);
    expect(numbers.calls).toBe(210);
    expect(measure(rans).durationMs).toBeGreaterThan(60_000 * 0.99);
  });

  it('gives both systems the same arrivals, and both answer all of them', async () => {
    const { outcome } = await run(spiral, 40);
    const [first = [], second = []] = outcome.runs.map(({ rans }) =>
      rans.map(({ task, arrivedMs }) => ({ task, arrivedMs })),
    );
    expect(first.length).toBeGreaterThan(100);
    expect(second).toEqual(first);
  });
});

async function run(scenario: CaseScenario, tasks: number) {
  if (inject('distIsStale')) throw new Error('dist is older than src: npm run build');
  const one: Case = { ...small, tasks, postgresUrl: inject('postgresUrl') };
  const outcome = await scenario.run(one);
  const numbers: Readonly<Record<string, number>> = Object.assign(
    {},
    ...outcome.rows.map((row) => row.numbers),
  ) as Record<string, number>;
  return { outcome, rans: outcome.runs[0]?.rans ?? [], numbers };
}
