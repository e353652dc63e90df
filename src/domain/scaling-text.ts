import { countText } from './limit-text.js';
import type { Demand, QueueWork, ScalingSettings } from './scaling.js';
import type { HeldUpBy } from './work-waiting.js';

const shownQueues = 3;

/** For people: why so many workers are wanted, in a sentence or two. */
export function scalingText(demand: Demand, desired: number, settings: ScalingSettings): string {
  return [
    workText(demand),
    ...heldUpText(demand.queues),
    ...boundText(demand, desired, settings),
    ...unseenText(demand),
  ].join(' ');
}

function workText({ current, needed, waiting, freeSlots }: Demand): string {
  const workers = countOf(current, 'worker');
  if (waiting === 0) return `No task waits for want of workers; there ${be(current)} ${workers}.`;
  const tasks = `${countOf(waiting, 'task')} ${waiting === 1 ? 'waits' : 'wait'} for a worker`;
  if (needed <= current) {
    return `${tasks}, and the ${workers} with ${countOf(freeSlots, 'free slot')} will do.`;
  }
  return `${tasks}; there ${be(current)} ${workers} with ${countOf(freeSlots, 'free slot')}.`;
}

function heldUpText(queues: readonly QueueWork[]): string[] {
  const heldUp = queues.filter(({ due, waiting }) => due > waiting);
  if (heldUp.length === 0) return [];
  const tasks = heldUp.reduce((total, { due, waiting }) => total + due - waiting, 0);
  const named = heldUp
    .slice(0, shownQueues)
    .map(({ queue, heldUpBy }) => `${queue} has ${causes[heldUpBy ?? 'rate_limit']}`);
  const more = heldUp.length > shownQueues ? ', …' : '';
  return [
    `${countOf(tasks, 'more')} would not start with more workers: ${named.join(', ')}${more}.`,
  ];
}

const causes: Readonly<Record<HeldUpBy, string>> = {
  paused: 'a pause',
  circuit_open: 'an open circuit',
  rate_limit: 'no tokens left',
  max_concurrency: 'no slots left',
};

function boundText(
  { needed }: Demand,
  desired: number,
  { min, max, quietMs }: ScalingSettings,
): string[] {
  if (needed > max) return [`${countOf(needed, 'worker')} would be needed; ${max} is the most.`];
  if (desired > needed && desired === min) return [`${min} is the least.`];
  if (desired === needed) return [];
  const quiet = `${countText(quietMs / 1000)} s`;
  return [`${countText(needed)} would do; fewer are asked for when that was so for ${quiet}.`];
}

function unseenText({ unseen }: Demand): string[] {
  if (unseen === 0) return [];
  return [
    `What ${countOf(unseen, 'worker')} can do was not looked at: ` +
      'together workers name too many task types and queues.',
  ];
}

function be(count: number): string {
  return count === 1 ? 'is' : 'are';
}

function countOf(count: number, noun: string): string {
  const isPlain = count === 1 || noun === 'more';
  return `${countText(count)} ${noun}${isPlain ? '' : 's'}`;
}
