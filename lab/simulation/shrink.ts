import { ruleOf, type Failure } from './job.js';
import { runSeed, type SeedOptions } from './run-seed.js';
import type { Stage } from './stage.js';

const mostRuns = 80;

/**
 * Leaves out steps, half of them at first and single ones at last, as long as the same rule is still
 * broken. Each step draws from numbers of its own, so the others stay what they were.
 */
export async function shrink(
  stage: Stage,
  options: SeedOptions,
  failure: Failure,
): Promise<SeedOptions> {
  const steps = failure.step === 'drain' ? options.steps : failure.step;
  let smallest: SeedOptions = { ...options, steps };
  let runs = 0;
  for (let size = Math.ceil(steps / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let first = 1; first <= steps && runs < mostRuns; first += size) {
      const left = new Set([...(smallest.without ?? []), ...range(first, size, steps)]);
      if (left.size === (smallest.without?.size ?? 0)) continue;
      runs += 1;
      const tried = { ...smallest, without: left };
      const found = (await runSeed(stage, tried)).failure;
      if (found !== null && ruleOf(found) === ruleOf(failure)) smallest = tried;
    }
  }
  return smallest;
}

function range(first: number, size: number, most: number): number[] {
  return Array.from({ length: Math.min(size, most - first + 1) }, (_, n) => first + n);
}
