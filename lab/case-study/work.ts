import { seededRandom } from '../shared/measure.js';

/** One call of a model, and how long the model will take for it. */
export interface Work {
  readonly task: number;
  readonly model: string;
  readonly ms: number;
}

/** Work that is there from this moment on. */
export interface Arrival extends Work {
  readonly arrivedMs: number;
}

/** What became of it: when the model began and ended, and when whoever asked for it had the answer. */
export interface Ran {
  readonly task: number;
  readonly model: string;
  readonly arrivedMs: number;
  readonly startedMs: number;
  readonly endedMs: number;
  readonly answeredMs: number;
}

export const models: readonly string[] = Array.from({ length: 10 }, (_, n) => `model-${n}`);
export const longShare = 0.05;

const shortMs = { from: 1_000, to: 5_000 };
const longMs = { from: 20_000, to: 40_000 };

/**
 * The same for the same seed. The models take turns, so that each has as many. Exactly one in twenty
 * takes long; which ones, and how long each takes, is drawn.
 */
export function drawWork(seed: number, tasks: number): readonly Work[] {
  const random = seededRandom(seed);
  const long = new Set(shuffled(tasks, random).slice(0, Math.round(tasks * longShare)));
  return Array.from({ length: tasks }, (_, task) => {
    const { from, to } = long.has(task) ? longMs : shortMs;
    const ms = Math.round(from + random() * (to - from));
    return { task, model: models[task % models.length] ?? '', ms };
  });
}

/** All of it is there at once. */
export function atOnce(work: readonly Work[]): readonly Arrival[] {
  return work.map((one) => ({ ...one, arrivedMs: 0 }));
}

function shuffled(length: number, random: () => number): readonly number[] {
  const keys = Array.from({ length }, () => random());
  return keys
    .map((key, index) => ({ key, index }))
    .sort((a, b) => a.key - b.key)
    .map(({ index }) => index);
}
