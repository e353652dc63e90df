import type { TaskId } from '../domain/ids.js';
import type { TaskFilter } from '../protocol/tasks-api.js';

/** Of each table, in one call. A filter that matches little answers little, and a cursor. */
export const maxScannedRows = 10_000;

/** Before and after every id there is. */
export const firstTaskId = '00000000-0000-0000-0000-000000000000' as TaskId;
export const lastTaskId = 'ffffffff-ffff-ffff-ffff-ffffffffffff' as TaskId;

/**
 * The living that a status can be found among. Dead letters have an index in the order of the ids.
 * What is held is few, and found by the index of holders, whatever waits. Those of one key ($6 of `filterValues`)
 * have an index as well (tasks_owned); history has none, and is read as for any other filter.
 */
export function livingOf(status: TaskFilter['status'], areOwned: boolean): string {
  if (areOwned) return 'select * from sluice.tasks where owner = $6';
  switch (status) {
    case 'dead_letter':
    case 'failed':
      return endedBadly;
    case 'assigned':
    case 'executing':
      // Offset 0 keeps the planner from walking the primary key through everything that waits.
      return 'select * from sluice.tasks where worker_id is not null offset 0';
    case 'pending':
    case 'queued':
    case 'completed':
    case 'cancelled':
    case undefined:
      return 'select * from sluice.tasks';
  }
}

/** Index: tasks_ended. */
const endedBadly = `select * from sluice.tasks where status in ('dead_letter', 'failed')`;
