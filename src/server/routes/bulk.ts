import {
  cancelledSchema,
  cancelTasksSchema,
  countTasksQuerySchema,
  replayTasksSchema,
  reprioritisedSchema,
  reprioritiseTasksSchema,
  taskCountSchema,
} from '../../protocol/bulk-schema.js';
import {
  bulkFilterFromWire,
  bulkReplayFromWire,
  bulkReprioritiseFromWire,
  bulkRequestFromWire,
  cancelledToWire,
  countRequestFromWire,
  reprioritisedToWire,
  taskCountToWire,
} from '../../protocol/bulk-wire.js';
import { replayedSchema } from '../../protocol/dead-letters-schema.js';
import { replayedToWire } from '../../protocol/dead-letters-wire.js';
import { taskFilterFromWire } from '../../protocol/tasks-wire.js';
import type { App } from '../app-parts.js';

const tags = ['Tasks'];

/** What concerns all tasks of a filter. Each call is bounded and says where the next one goes on. */
export function bulkRoutes(app: App): void {
  app.get(
    '/api/v1/tasks/count',
    {
      schema: {
        tags,
        operationId: 'countTasks',
        summary: 'Count the tasks that match a filter',
        description:
          'Newest first. One call looks at 10,000 living tasks and 10,000 of the history at most; call again with ' +
          '`cursor` while `next_cursor` is not null, and add up.',
        querystring: countTasksQuerySchema,
        response: { 200: taskCountSchema },
      },
      config: { scope: 'read', confined: 'filtered' },
    },
    async ({ api, query }) =>
      taskCountToWire(await api.countTasks(taskFilterFromWire(query), countRequestFromWire(query))),
  );

  app.post(
    '/api/v1/tasks/cancel',
    {
      schema: {
        tags,
        operationId: 'cancelTasks',
        summary: 'Cancel all tasks that match a filter',
        description:
          'At least one filter. With `limit` or `cursor` a call is bounded, and answers where the next one goes on.',
        body: cancelTasksSchema,
        response: { 200: cancelledSchema },
      },
      config: { scope: 'admin', confined: 'filtered' },
    },
    async ({ api, body }) =>
      cancelledToWire(await api.cancelTasks(bulkFilterFromWire(body), bulkRequestFromWire(body))),
  );

  app.post(
    '/api/v1/tasks/replay',
    {
      schema: {
        tags,
        operationId: 'replayTasks',
        summary: 'Bring back all ended tasks that match a filter',
        description:
          'At least one filter. Dead letters and failed tasks, oldest first; cancelled ones only when `status` says ' +
          'so. They become due one after the other, `per_second` of them. Call again with `cursor` while ' +
          '`next_cursor` is not null.',
        body: replayTasksSchema,
        response: { 200: replayedSchema },
      },
      config: { scope: 'admin', confined: 'filtered' },
    },
    async ({ api, body }) =>
      replayedToWire(await api.replayTasks(bulkFilterFromWire(body), bulkReplayFromWire(body))),
  );

  app.post(
    '/api/v1/tasks/reprioritise',
    {
      schema: {
        tags,
        operationId: 'reprioritiseTasks',
        summary: 'Change the priority of all tasks that match a filter and have not started',
        description:
          'At least one filter. Oldest first. Call again with `cursor` while `next_cursor` is not null.',
        body: reprioritiseTasksSchema,
        response: { 200: reprioritisedSchema },
      },
      config: { scope: 'admin', confined: 'filtered' },
    },
    async ({ api, body }) =>
      reprioritisedToWire(
        await api.reprioritiseTasks(bulkFilterFromWire(body), bulkReprioritiseFromWire(body)),
      ),
  );
}
