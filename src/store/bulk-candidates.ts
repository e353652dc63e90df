import { unconfined } from '../domain/confinement.js';
import type { BulkAction } from '../protocol/bulk-api.js';
import type { TaskFilter } from '../protocol/tasks-api.js';
import { livingOf } from './task-walk.js';

/** Where tasks are looked for. */
export type Tables = 'living' | 'history' | 'both';

/** Without an action: whatever matches. */
export function tablesOf(action: BulkAction | undefined, status: TaskFilter['status']): Tables {
  const isEnd = status === 'completed' || status === 'cancelled';
  switch (action) {
    case undefined:
      if (status === undefined) return 'both';
      return isEnd ? 'history' : 'living';
    case 'cancel':
    case 'reprioritise':
      return 'living';
    case 'replay':
      return isEnd ? 'history' : 'living';
  }
}

/** The living that an action looks at. */
export function livingFor(action: BulkAction | undefined, filter: TaskFilter): string {
  switch (action) {
    case undefined:
    case 'cancel':
      return livingOf(filter.status, isOfOneKey(filter));
    case 'replay':
      return livingOf('dead_letter', isOfOneKey(filter));
    case 'reprioritise':
      return livingOf('pending', isOfOneKey(filter));
  }
}

function isOfOneKey({ within = unconfined }: TaskFilter): boolean {
  return within.owner !== null;
}

/** What the state of a task aliased `task` must be. $8 is the status that the filter names, or null. */
export function isWantedBy(action: BulkAction | undefined): string {
  switch (action) {
    case undefined:
      return '($8::text is null or task.status = $8)';
    case 'cancel':
      return isCancellable;
    case 'replay':
      return isReplayable;
    case 'reprioritise':
      return isWaiting;
  }
}

/** Dead letters that halt a workflow only when they are asked for by status. */
const isCancellable = `
  case
    when $8::text is null then task.status in ('pending', 'queued', 'assigned', 'executing')
    else task.status = $8
      and (task.ended_at is null or (task.workflow_id is not null and task.halts_workflow))
  end`;

/** Cancelled ones only when they are asked for by status: somebody ended them on purpose. */
const isReplayable = `
  case
    when $8::text is null then task.status in ('dead_letter', 'failed')
    else task.status = $8 and task.status in ('dead_letter', 'failed', 'cancelled')
  end`;

const isWaiting = `
  task.status in ('pending', 'queued') and ($8::text is null or task.status = $8)`;
