import type { QueueView } from '../../protocol/queues-api.js';

/** What the table of queues can be sorted by, in the order in which the key `s` goes through them. */
export const queueOrders = ['waiting', 'running', 'completed', 'failed', 'oldest', 'name'] as const;

export type QueueOrder = (typeof queueOrders)[number];

export function waitingOf({ live: { depth, backlog } }: QueueView): number {
  return depth.high + depth.medium + depth.low + backlog;
}

const values: Readonly<Record<Exclude<QueueOrder, 'name'>, (queue: QueueView) => number>> = {
  waiting: waitingOf,
  running: ({ live }) => live.running,
  completed: ({ live }) => live.lastMinute.completed,
  failed: ({ live }) => live.lastMinute.failed,
  oldest: ({ live }) => live.oldestAgeSeconds ?? -1,
};

/** The largest first, equal ones by name. */
export function sortQueues(queues: readonly QueueView[], order: QueueOrder): QueueView[] {
  const byName = (a: QueueView, b: QueueView) => (a.name < b.name ? -1 : 1);
  if (order === 'name') return queues.toSorted(byName);
  const value = values[order];
  return queues.toSorted((a, b) => value(b) - value(a) || byName(a, b));
}
