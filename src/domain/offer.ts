import type { Lane } from './lane.js';

/** What a worker can do. Null: every type, every queue; of capabilities: whatever a task needs. */
export interface Offer {
  readonly taskTypes: readonly string[] | null;
  readonly queues: readonly string[] | null;
  readonly capabilities: readonly string[] | null;
}

/** An offer for many lanes: a name is found as soon among a thousand as among three. */
export interface OfferSets {
  readonly taskTypes: ReadonlySet<string> | null;
  readonly queues: ReadonlySet<string> | null;
  readonly capabilities: ReadonlySet<string> | null;
}

export function offerSets({ taskTypes, queues, capabilities }: Offer): OfferSets {
  return {
    taskTypes: setOf(taskTypes),
    queues: setOf(queues),
    capabilities: setOf(capabilities),
  };
}

function setOf(names: readonly string[] | null): ReadonlySet<string> | null {
  return names === null ? null : new Set(names);
}

export function canDo({ taskTypes, queues, capabilities }: OfferSets, lane: Lane): boolean {
  return (
    (taskTypes === null || taskTypes.has(lane.taskType)) &&
    (queues === null || queues.has(lane.queue)) &&
    (capabilities === null || lane.capabilities.every((each) => capabilities.has(each)))
  );
}

const weightOfName = 40;

/** What its names take in memory, about. */
export function weightOf({ taskTypes, queues, capabilities }: Offer): number {
  return namesOf({ taskTypes, queues, capabilities }).reduce(
    (sum, name) => sum + weightOfName + name.length,
    0,
  );
}

/** All its names, as one list. */
export function namesOf({ taskTypes, queues, capabilities }: Offer): string[] {
  return [...(taskTypes ?? []), ...(queues ?? []), ...(capabilities ?? [])];
}
