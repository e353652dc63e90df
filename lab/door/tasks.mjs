// What the workers of this lab run. Plain JavaScript: no compiler each.
export { step } from '../workers/tasks.mjs';

/** Keeps its core busy for so long: what a task of this kind does with an answer of its service. */
export const work = {
  type: 'work',
  run: ({ us }) => {
    const endMs = performance.now() + us / 1000;
    while (performance.now() < endMs);
    return null;
  },
};
