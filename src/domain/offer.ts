import type { Lane } from './lane.js';

/** What a worker can do. Null: every type, every queue; of capabilities: whatever a task needs. */
export interface Offer {
  readonly taskTypes: readonly string[] | null;
  readonly queues: readonly string[] | null;
  readonly capabilities: readonly string[] | null;
}

export function canDo({ taskTypes, queues, capabilities }: Offer, lane: Lane): boolean {
  return (
    (taskTypes === null || taskTypes.includes(lane.taskType)) &&
    (queues === null || queues.includes(lane.queue)) &&
    (capabilities === null || lane.capabilities.every((each) => capabilities.includes(each)))
  );
}

/** Whether the one shares in the work of the other, which must have its capabilities. */
export function overlaps(one: Offer, other: Offer): boolean {
  const share = (some: readonly string[] | null, others: readonly string[] | null) =>
    some === null || others === null || some.some((each) => others.includes(each));
  return (
    share(one.taskTypes, other.taskTypes) &&
    share(one.queues, other.queues) &&
    (one.capabilities ?? []).every((each) => other.capabilities?.includes(each) ?? true)
  );
}
