import { Type } from 'typebox';
import { isConfined, unconfined } from '../../domain/confinement.js';
import { SluiceError } from '../../domain/errors.js';
import { taskIdFromWire } from '../../protocol/common-wire.js';
import { eventsQuerySchema } from '../../protocol/tasks-schema.js';
import type { App } from '../app-parts.js';
import type { LiveEvents } from '../live-events.js';
import type { OpenRequests } from '../open-requests.js';

export function eventRoutes(app: App, live: LiveEvents, open: OpenRequests): void {
  app.get(
    '/api/v1/events',
    {
      exposeHeadRoute: false,
      schema: {
        tags: ['Tasks'],
        summary: 'Follow tasks as server-sent events',
        description:
          '"task" on every change of state, as TaskEvent; "stats" once a second, as Statistics; "gap" with ' +
          'how many events were "missed", when there were more than the reader, or all readers together, ' +
          'could be sent. Sent in batches, four a second, fewer with more than 80 listeners. Listeners of one task get no "stats".',
        produces: ['text/event-stream'],
        querystring: eventsQuerySchema,
        response: {
          200: Type.String({ description: 'A stream that ends when its reader leaves' }),
        },
      },
      config: { scope: 'read', confined: 'filtered', refusals: ['refused'] },
    },
    async ({ api, holder, query }, reply) => {
      const within = holder?.confinement ?? unconfined;
      const taskId = query.task_id === undefined ? null : taskIdFromWire(query.task_id);
      if (within.owner !== null && taskId === null) throw needsTask();
      if (isConfined(within) && taskId !== null) await api.getTask(taskId);
      // After the last wait: those that come at once are counted one after the other.
      live.refuseTooMany(holder?.owner ?? null);
      const signal = open.signalFor(reply);
      reply.hijack();
      live.add(reply, { queue: query.queue ?? null, taskId, within }, signal);
      return reply;
    },
  );
}

/** An event does not say whose task it is of. */
function needsTask(): SluiceError {
  const detail = 'This key is confined to its own tasks: name the one to follow with task_id.';
  return new SluiceError('forbidden', detail);
}
