// A process of the crew: takes jobs from its parent, one at a time. Its time is not that of the wall.
import { createHash } from 'node:crypto';

import type { Job, Outcome } from './job.js';
import { runSeed, type SeedOptions, type SeedResult } from './run-seed.js';
import { sabotageOf } from './sabotages.js';
import { shrink } from './shrink.js';
import { openStage, type Stage } from './stage.js';

const lastLines = 40;

async function doJob(stage: Stage, job: Job): Promise<Outcome> {
  const { seed, steps, sabotage } = job;
  const options: SeedOptions = {
    seed,
    steps,
    without: new Set(job.without),
    ...(sabotage === null ? {} : { sabotage: sabotageOf(sabotage) }),
  };
  const result = await runSeed(stage, options);
  if (job.kind === 'run' || result.failure === null) return outcomeOf(options, result, job.trace);
  const smallest = await shrink(stage, options, result.failure);
  return outcomeOf(smallest, await runSeed(stage, smallest), job.trace);
}

function outcomeOf(
  { seed, steps, without }: SeedOptions,
  { trace, ...result }: SeedResult,
  isWhole: boolean,
): Outcome {
  return {
    seed,
    steps,
    without: [...(without ?? [])],
    ...result,
    trace: isWhole ? trace : result.failure === null ? [] : trace.slice(-lastLines),
    digest: createHash('sha256').update(trace.join('\n')).digest('hex'),
  };
}

const stage = await openStage(process.argv[2]);
process.on('message', (job: Job) => {
  doJob(stage, job).then(
    (outcome) => process.send?.(outcome),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.on('disconnect', () => process.exit(0));
process.send?.('ready');
