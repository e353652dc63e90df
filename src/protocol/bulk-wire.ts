import type {
  BulkReplay,
  BulkReprioritise,
  BulkRequest,
  CancelledTasks,
  ReprioritisedTasks,
  TaskCount,
  TaskCountRequest,
} from './bulk-api.js';
import type {
  CancelledWire,
  CancelTasksWire,
  CountTasksQueryWire,
  ReplayTasksWire,
  ReprioritisedWire,
  ReprioritiseTasksWire,
  TaskCountWire,
} from './bulk-schema.js';
import { timestampOrNullFromWire, timestampOrNullToWire } from './common-wire.js';
import { deadLetterReplayFields, deadLetterReplayFromWire } from './dead-letters-wire.js';
import { defined } from './defined.js';
import { writeRequest, type FieldsOf } from './fields.js';
import { invalidField } from './problem-wire.js';
import type { TaskFilter } from './tasks-api.js';
import type { TaskFilterWire } from './tasks-schema.js';
import { filterFields, taskFilterFromWire, taskFilterToWire } from './tasks-wire.js';

/** Of an action: without a filter it would change every task there is. */
export function bulkFilterFromWire(wire: TaskFilterWire): TaskFilter {
  const filter = taskFilterFromWire(wire);
  if (Object.keys(filter).length > 0) return filter;
  throw invalidField('', 'needs at least one filter, such as a queue or a status');
}

const countFields = {
  action: 'action',
  cursor: 'cursor',
} as const satisfies FieldsOf<TaskCountRequest>;

const bulkFields = {
  limit: 'limit',
  cursor: 'cursor',
} as const satisfies FieldsOf<BulkRequest>;

const replayFields = {
  ...deadLetterReplayFields,
  ...bulkFields,
} as const satisfies FieldsOf<BulkReplay>;

const reprioritiseFields = {
  newPriority: 'new_priority',
  ...bulkFields,
} as const satisfies FieldsOf<BulkReprioritise>;

/** With those of the filter: what a refusal may point to. */
export const countTasksFields = { ...filterFields, ...countFields };
export const cancelTasksFields = { ...filterFields, ...bulkFields };
export const replayTasksFields = { ...filterFields, ...replayFields };
export const reprioritiseTasksFields = { ...filterFields, ...reprioritiseFields };

export function countTasksToWire(
  filter: TaskFilter,
  request: TaskCountRequest,
): CountTasksQueryWire {
  return {
    ...taskFilterToWire(filter),
    ...(writeRequest(countFields, request) as CountTasksQueryWire),
  };
}

export function countRequestFromWire({ action, cursor }: CountTasksQueryWire): TaskCountRequest {
  return defined({ action, cursor });
}

export function taskCountToWire(counted: TaskCount): TaskCountWire {
  return {
    count: counted.count,
    scanned: counted.scanned,
    searched_back_to: timestampOrNullToWire(counted.searchedBackTo),
    next_cursor: counted.nextCursor,
  };
}

export function taskCountFromWire(wire: TaskCountWire): TaskCount {
  return {
    count: wire.count,
    scanned: wire.scanned,
    searchedBackTo: timestampOrNullFromWire(wire.searched_back_to),
    nextCursor: wire.next_cursor,
  };
}

export function cancelTasksToWire(filter: TaskFilter, request: BulkRequest): CancelTasksWire {
  return { ...taskFilterToWire(filter), ...(writeRequest(bulkFields, request) as BulkRequest) };
}

export function bulkRequestFromWire({ limit, cursor }: CancelTasksWire): BulkRequest {
  return defined({ limit, cursor });
}

export function cancelledToWire({ cancelled, nextCursor }: CancelledTasks): CancelledWire {
  return { cancelled, next_cursor: nextCursor };
}

export function cancelledFromWire(wire: CancelledWire): CancelledTasks {
  return { cancelled: wire.cancelled, nextCursor: wire.next_cursor };
}

export function replayTasksToWire(filter: TaskFilter, request: BulkReplay): ReplayTasksWire {
  return {
    ...(taskFilterToWire(filter) as ReplayTasksWire),
    ...(writeRequest(replayFields, request) as ReplayTasksWire),
  };
}

export function bulkReplayFromWire(wire: ReplayTasksWire): BulkReplay {
  return { ...deadLetterReplayFromWire(wire), ...defined({ limit: wire.limit }) };
}

export function reprioritiseTasksToWire(
  filter: TaskFilter,
  request: BulkReprioritise,
): ReprioritiseTasksWire {
  return {
    ...(taskFilterToWire(filter) as ReprioritiseTasksWire),
    ...(writeRequest(reprioritiseFields, request) as ReprioritiseTasksWire),
  };
}

export function bulkReprioritiseFromWire(wire: ReprioritiseTasksWire): BulkReprioritise {
  const { new_priority: newPriority, limit, cursor } = wire;
  return { newPriority, ...defined({ limit, cursor }) };
}

export function reprioritisedToWire(answer: ReprioritisedTasks): ReprioritisedWire {
  return { reprioritised: answer.reprioritised, next_cursor: answer.nextCursor };
}

export function reprioritisedFromWire(wire: ReprioritisedWire): ReprioritisedTasks {
  return { reprioritised: wire.reprioritised, nextCursor: wire.next_cursor };
}
