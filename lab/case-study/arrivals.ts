import { seededRandom } from '../shared/measure.js';
import { drawWork, type Arrival } from './work.js';

/** For so long, so many arrive in a second on average. */
export interface Phase {
  readonly seconds: number;
  readonly perSecond: number;
}

/** As people come: independent of each other (a Poisson process), the same for the same seed. */
export function drawArrivals(seed: number, phases: readonly Phase[]): readonly Arrival[] {
  const times = drawTimes(seededRandom(seed), phases);
  const work = drawWork(seed, times.length);
  return work.map((one) => ({ ...one, arrivedMs: times[one.task] ?? 0 }));
}

function drawTimes(random: () => number, phases: readonly Phase[]): readonly number[] {
  const times: number[] = [];
  let beganMs = 0;
  for (const { seconds, perSecond } of phases) {
    const endMs = beganMs + seconds * 1_000;
    const step = () => (-Math.log(1 - random()) / perSecond) * 1_000;
    for (let timeMs = beganMs + step(); timeMs < endMs; timeMs += step()) times.push(timeMs);
    beganMs = endMs;
  }
  return times;
}
