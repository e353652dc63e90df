import { Type, type Static } from 'typebox';
import { bounds } from './bounds.js';
import { bulkActions } from './bulk-api.js';
import {
  nullable,
  pageProperties,
  prioritySchema,
  request,
  timestampSchema,
} from './common-schema.js';
import { replayDeadLettersSchema } from './dead-letters-schema.js';
import { filterProperties } from './tasks-schema.js';

const { cursor } = pageProperties;

const nextCursorSchema = nullable(
  Type.String({ description: 'Call again with it: there may be more; null when there are none' }),
);

const bulkProperties = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: bounds.bulkTasks,
      description: `The most that one call changes; ${bounds.bulkTasks.toLocaleString('en')} when absent`,
    }),
  ),
  cursor,
};

export const countTasksQuerySchema = request('CountTasksQuery', {
  ...filterProperties,
  action: Type.Optional(
    Type.Enum([...bulkActions], { description: 'Only the tasks that this action would change' }),
  ),
  cursor,
});
export type CountTasksQueryWire = Static<typeof countTasksQuerySchema>;

export const taskCountSchema = Type.Object(
  {
    count: Type.Integer({ description: 'How many of the tasks that this call looked at match' }),
    scanned: Type.Integer({ description: 'How many tasks this call looked at' }),
    searched_back_to: nullable(
      timestampSchema(
        'Every task that was submitted later was looked at, by this call or an earlier one; null: all tasks were',
      ),
    ),
    next_cursor: nextCursorSchema,
  },
  { title: 'TaskCount' },
);
export type TaskCountWire = Static<typeof taskCountSchema>;

export const cancelTasksSchema = request(
  'CancelTasks',
  {
    ...filterProperties,
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: bounds.bulkTasks,
        description: 'The most that one call cancels; without it and cursor: all of them',
      }),
    ),
    cursor,
  },
  { examples: [{ queue: 'gpt-4o', status: 'pending', limit: 1_000 }] },
);
export type CancelTasksWire = Static<typeof cancelTasksSchema>;

export const cancelledSchema = Type.Object(
  {
    cancelled: Type.Integer({ description: 'How many were cancelled' }),
    next_cursor: nextCursorSchema,
  },
  { title: 'Cancelled' },
);
export type CancelledWire = Static<typeof cancelledSchema>;

const { reset_retry_count, new_priority, per_second } = replayDeadLettersSchema.properties;

export const replayTasksSchema = request(
  'ReplayTasks',
  {
    ...filterProperties,
    status: Type.Optional(
      Type.Enum(['dead_letter', 'failed', 'cancelled'], {
        description: 'In this state; dead letters and failed tasks when absent',
      }),
    ),
    ...{ reset_retry_count, new_priority, per_second },
    ...bulkProperties,
  },
  { examples: [{ queue: 'gpt-4o', tag: 'nightly', per_second: 20 }] },
);
export type ReplayTasksWire = Static<typeof replayTasksSchema>;

export const reprioritiseTasksSchema = request(
  'ReprioritiseTasks',
  {
    ...filterProperties,
    status: Type.Optional(
      Type.Enum(['pending', 'queued'], { description: 'In this state; both when absent' }),
    ),
    new_priority: prioritySchema,
    ...bulkProperties,
  },
  { examples: [{ user_id: 'u-17', new_priority: 'high' }] },
);
export type ReprioritiseTasksWire = Static<typeof reprioritiseTasksSchema>;

export const reprioritisedSchema = Type.Object(
  {
    reprioritised: Type.Integer({
      description: 'How many changed; what has the priority already stays as it is',
    }),
    next_cursor: nextCursorSchema,
  },
  { title: 'Reprioritised' },
);
export type ReprioritisedWire = Static<typeof reprioritisedSchema>;
