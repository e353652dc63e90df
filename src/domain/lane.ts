/** What a worker can or can't do as a whole: tasks of one queue, one type, one capability set. */
export interface Lane {
  readonly queue: string;
  readonly taskType: string;
  /** Sorted, without duplicates: see `capabilitySet`. */
  readonly capabilities: readonly string[];
}

const none: readonly string[] = [];

/** No task can have it. */
export const everyType = '*';

/**
 * Stands for all lanes of a queue where there are too many to name, and of all queues where the name is
 * empty: a wake-up of it concerns every worker that may take from there.
 */
export function anyLaneOf(queue: string): Lane {
  return { queue, taskType: everyType, capabilities: none };
}

export function capabilitySet(capabilities: readonly string[]): readonly string[] {
  return capabilities.length === 0 ? none : [...new Set(capabilities)].sort();
}

/**
 * The same text for the same lane. Names can't hold the separators: the wire refuses them. Joined, it is
 * one piece where it is kept; put together by a template it is all its parts, and twice as large.
 */
export function laneKey({ queue, taskType, capabilities }: Lane): string {
  return [queue, taskType, capabilities.join('\t')].join('\n');
}

/** The lane of a `laneKey`. */
export function laneOf(key: string): Lane {
  const [queue = '', taskType = '', joined = ''] = key.split('\n');
  return { queue, taskType, capabilities: joined === '' ? [] : joined.split('\t') };
}

/** Lanes of one type and one capability set, whatever their queue: a worker can do all or none. */
export function routingGroupKey(lane: Omit<Lane, 'queue'>): string {
  return `${lane.taskType}\n${lane.capabilities.join('\t')}`;
}
