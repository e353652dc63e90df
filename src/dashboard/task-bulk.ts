import type { BulkAction } from '../protocol/bulk-api.js';
import type { CancelledWire, ReprioritisedWire, TaskCountWire } from '../protocol/bulk-schema.js';
import type { ReplayedWire } from '../protocol/dead-letters-schema.js';
import type { Bulk } from './components/bulk-dialog.js';
import { words } from './format.js';
import { get, query, send } from './http.js';
import type { TaskSearch } from './task-search.js';

type Filter = Omit<TaskSearch, 'text'>;

/** Of one call: a second or so, so that a stop is obeyed soon. */
const stepSize = 5_000;

export const countCall =
  (filter: Filter, action?: BulkAction) =>
  (cursor: string | null): Promise<TaskCountWire> =>
    get<TaskCountWire>(query('tasks/count', { ...filter, action, cursor }));

export interface BulkChoice {
  readonly label: string;
  readonly bulk: Omit<Bulk, 'onDone'>;
}

/** What can be done with the tasks of a filter: the status may leave nothing to do. */
export function bulkActionsFor(filter: Filter): readonly BulkChoice[] {
  const { status = 'any' } = filter;
  return [
    ...(['any', 'pending', 'queued', 'assigned', 'executing'].includes(status)
      ? [{ label: 'Cancel all of them …', bulk: cancelAll(filter) }]
      : []),
    ...(['any', 'dead_letter', 'failed', 'cancelled'].includes(status)
      ? [{ label: 'Replay all of them …', bulk: replayAll(filter) }]
      : []),
    ...(['any', 'pending', 'queued'].includes(status)
      ? [{ label: 'Change their priority …', bulk: reprioritiseAll(filter) }]
      : []),
  ];
}

function aboutText(filter: Filter): string {
  return Object.entries(filter)
    .map(([name, value]) => `${words(name)} ${value}`)
    .join(', ');
}

function bodyOf(filter: Filter, cursor: string | null): object {
  return { ...filter, limit: stepSize, ...(cursor === null ? {} : { cursor }) };
}

function cancelAll(filter: Filter): BulkChoice['bulk'] {
  return {
    title: 'Cancel tasks',
    text: `Tasks with ${aboutText(filter)} that have not ended. What runs is told to stop. A cancelled task can be replayed.`,
    result: 'cancelled',
    button: 'Cancel',
    typed: 'cancel',
    count: countCall(filter, 'cancel'),
    act: async (cursor) => {
      const answer = await send<CancelledWire>('POST', 'tasks/cancel', bodyOf(filter, cursor));
      return { done: answer.cancelled, next_cursor: answer.next_cursor };
    },
  };
}

function replayAll(filter: Filter): BulkChoice['bulk'] {
  const which = filter.status === undefined ? ' that are dead letters or failed' : '';
  return {
    title: 'Replay tasks',
    text: `Tasks with ${aboutText(filter)}${which}. They run again with all their retries, oldest first, 100 a second.`,
    result: 'replayed',
    button: 'Replay',
    count: countCall(filter, 'replay'),
    act: async (cursor) => {
      const answer = await send<ReplayedWire>('POST', 'tasks/replay', bodyOf(filter, cursor));
      return { done: answer.replayed, next_cursor: answer.next_cursor };
    },
  };
}

function reprioritiseAll(filter: Filter): BulkChoice['bulk'] {
  return {
    title: 'Change the priority',
    text: `Tasks with ${aboutText(filter)} that have not started. Those that have the priority already stay as they are.`,
    result: 'changed',
    button: 'Change',
    choice: { label: 'New priority', options: ['high', 'medium', 'low'] },
    count: countCall(filter, 'reprioritise'),
    act: async (cursor, new_priority) => {
      const body = { ...bodyOf(filter, cursor), new_priority };
      const answer = await send<ReprioritisedWire>('POST', 'tasks/reprioritise', body);
      return { done: answer.reprioritised, next_cursor: answer.next_cursor };
    },
  };
}
