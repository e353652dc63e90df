import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';

import { Crew } from '../../lab/simulation/crew.js';
import { ruleOf, type Outcome } from '../../lab/simulation/job.js';
import { sabotages } from '../../lab/simulation/sabotages.js';
import { transitions } from '../../src/domain/task-state.js';

const steps = 40;
/** Two cores do it in half a minute; nobody knows what else they have to do. */
const patienceMs = 600_000;

describe('the simulation', { timeout: patienceMs }, () => {
  let crew: Crew;
  beforeAll(async () => {
    crew = await Crew.open({ processes: 2, image: inject('pgliteImage') });
  });
  afterAll(() => crew[Symbol.asyncDispose]());

  it('R-RE8: 60 lives with crashes, cuts, outages and silent workers break no rule', async () => {
    const outcomes = await Promise.all(numbers(1, 60).map((seed) => crew.do({ seed, steps })));
    expect(outcomes.filter(({ failure }) => failure !== null).map(shortly)).toEqual([]);
    // Else the rules were kept by doing nothing. To cancel what halts a workflow is too rare to count on.
    const never = transitions.filter(
      ({ verb, from, to }) =>
        !(verb === 'cancel' && (from === 'dead_letter' || from === 'failed')) &&
        !outcomes.some(({ moves }) => (moves[`${from} → ${to}`] ?? 0) > 0),
    );
    expect(never).toEqual([]);
  });

  it('gives the same history for the same seed, in whichever process', async () => {
    for (const seed of [4711, 4712, 4713]) {
      const [one, other] = await Promise.all([
        crew.do({ seed, steps, trace: true }),
        crew.do({ seed, steps, trace: true }),
      ]);
      expect(one.trace.length).toBeGreaterThan(steps);
      expect(other).toEqual(one);
    }
  });

  it.each(Object.keys(sabotages))('finds out when %s', async (sabotage) => {
    expect(await findRule(crew, sabotage)).toBe(sabotages[sabotage]?.rule);
  });

  it('leaves out steps that a failure does not need', async () => {
    const planted = { sabotage: 'max_concurrency is ignored', steps: 120 };
    const failing = await findFailing(crew, planted);
    const smaller = await crew.do({ kind: 'shrink', ...planted, seed: failing.seed });
    expect(smaller.failure && ruleOf(smaller.failure)).toBe('no more at once than max_concurrency');
    expect(smaller.steps - smaller.without.length).toBeLessThan(steps);
  });
});

async function findRule(crew: Crew, sabotage: string): Promise<string | null> {
  const { failure } = await findFailing(crew, { sabotage, steps: 120 });
  return failure && ruleOf(failure);
}

/** Not every life gets to where a bug shows. */
async function findFailing(
  crew: Crew,
  planted: { readonly sabotage: string; readonly steps: number },
): Promise<Outcome> {
  for (const seed of numbers(1, 20)) {
    const outcome = await crew.do({ ...planted, seed });
    if (outcome.failure !== null) return outcome;
  }
  throw new Error(`nobody noticed that ${planted.sabotage}`);
}

function numbers(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, n) => first + n);
}

function shortly({ seed, failure }: Outcome): string {
  return `npm run simulate -- --seed ${seed} --steps ${steps} --trace: ${failure?.message ?? ''}`;
}
