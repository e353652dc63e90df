import type { Random } from './random.js';
import { queueSteps } from './queue-steps.js';
import { serverSteps } from './server-steps.js';
import { taskSteps } from './task-steps.js';
import { workerSteps } from './worker-steps.js';
import type { World } from './world.js';

/** One thing that somebody does; what it does is drawn from the numbers of this step alone. */
export interface Step {
  readonly name: string;
  /** How often, beside the others. */
  readonly weight: number;
  readonly take: (world: World, random: Random) => void | Promise<void>;
}

const steps: readonly Step[] = [...taskSteps, ...workerSteps, ...queueSteps, ...serverSteps];
const totalWeight = steps.reduce((sum, { weight }) => sum + weight, 0);

export function drawStep(random: Random): Step {
  let left = random.next() * totalWeight;
  for (const step of steps) {
    left -= step.weight;
    if (left < 0) return step;
  }
  throw new Error('there are no steps');
}
