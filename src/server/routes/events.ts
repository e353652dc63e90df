import { Type } from 'typebox';
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
          'could be sent. Sent in batches, four a second, fewer with more than 250 listeners.',
        produces: ['text/event-stream'],
        querystring: eventsQuerySchema,
        response: {
          200: Type.String({ description: 'A stream that ends when its reader leaves' }),
        },
      },
      config: { scope: 'read', refusals: ['refused'] },
    },
    ({ query, holder }, reply) => {
      live.refuseTooMany(holder?.keyId ?? null);
      const filter = {
        queue: query.queue ?? null,
        taskId: query.task_id === undefined ? null : taskIdFromWire(query.task_id),
      };
      const signal = open.signalFor(reply);
      reply.hijack();
      live.add(reply, filter, signal);
    },
  );
}
