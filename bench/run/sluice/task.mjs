import { defineTask } from 'sluice';
import { nowMs } from '../clock.mjs';
import { payload, range, result } from '../task.mjs';

export const queue = 'bench';

/** A handler that does nothing but say that it began. */
export function benchTask(onStart) {
  return defineTask({
    type: 'noop',
    queue,
    run: ({ index }) => {
      onStart(index, nowMs());
      return result;
    },
  });
}

const submitted = benchTask(() => undefined);

export async function enqueue(sluice, count) {
  const submissions = range(0, count).map((index) => ({ input: payload(index) }));
  const outcomes = await sluice.submitMany(submitted, submissions);
  const refused = outcomes.find(({ kind }) => kind !== 'accepted');
  if (refused !== undefined || outcomes.length !== count) {
    throw new Error('A task was refused', { cause: refused?.error });
  }
}

export async function submit(sluice, index) {
  await sluice.submit(submitted, payload(index));
}
