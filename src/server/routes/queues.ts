import { timestampFromWire } from '../../protocol/common-wire.js';
import {
  listQueuesQuerySchema,
  pauseSchema,
  queueChangeSchema,
  queueDraftSchema,
  queuePageSchema,
  queueParamsSchema,
  queueSchema,
} from '../../protocol/queues-schema.js';
import { forecastSchema } from '../../protocol/forecast-schema.js';
import { forecastToWire } from '../../protocol/forecast-wire.js';
import { listPushbacksQuerySchema, pushbackPageSchema } from '../../protocol/pushbacks-schema.js';
import { pushbackPageToWire } from '../../protocol/pushbacks-wire.js';
import { queueDraftFromWire, queuePageToWire, queueToWire } from '../../protocol/queues-wire.js';
import { emptySchema } from '../../protocol/common-schema.js';
import type { App } from '../app-parts.js';
import { pageOf } from './page.js';

const tags = ['Queues'];

export function queueRoutes(app: App): void {
  app.get(
    '/api/v1/queues',
    {
      schema: {
        tags,
        operationId: 'listQueues',
        summary: 'List queues',
        querystring: listQueuesQuerySchema,
        response: { 200: queuePageSchema },
      },
      config: { scope: 'read', confined: 'filtered' },
    },
    async ({ api, query }) => queuePageToWire(await api.listQueues(pageOf(query))),
  );

  app.get(
    '/api/v1/queues/:name',
    {
      schema: {
        tags,
        operationId: 'getQueue',
        summary: 'Get a queue: its configuration and how it is doing',
        params: queueParamsSchema,
        response: { 200: queueSchema },
      },
      config: { scope: 'read', confined: 'queue', refusals: ['queue_not_found'] },
    },
    async ({ api, params }) => queueToWire(await api.getQueue(params.name)),
  );

  app.get(
    '/api/v1/queues/:name/forecast',
    {
      schema: {
        tags,
        operationId: 'getForecast',
        summary: 'When a queue will be empty, and which dispatch deadlines it will miss',
        description:
          'If nothing changes. Counts what is known now: limits, slots, a pause, what comes and what goes.',
        params: queueParamsSchema,
        response: { 200: forecastSchema },
      },
      config: { scope: 'read', confined: 'queue', refusals: ['queue_not_found'] },
    },
    async ({ api, params }) => forecastToWire(await api.getForecast(params.name)),
  );

  app.get(
    '/api/v1/queues/:name/pushbacks',
    {
      schema: {
        tags,
        operationId: 'listPushbacks',
        summary: 'What the service of a queue said when it wanted no calls, newest first',
        description:
          'Of each second one answer for each server, with how many there were. The newest 1,000 are kept, for a ' +
          'week. Not for keys that reach their own tasks only.',
        params: queueParamsSchema,
        querystring: listPushbacksQuerySchema,
        response: { 200: pushbackPageSchema },
      },
      config: { scope: 'read', confined: 'queue', refusals: ['queue_not_found'] },
    },
    async ({ api, params, query }) =>
      pushbackPageToWire(await api.listPushbacks(params.name, pageOf(query))),
  );

  app.put(
    '/api/v1/queues/:name',
    {
      schema: {
        tags,
        operationId: 'setQueue',
        summary: 'Replace the configuration of a queue',
        description: 'Makes the queue when there is none. Counts for the very next take.',
        params: queueParamsSchema,
        body: queueDraftSchema,
        response: { 200: queueSchema },
      },
      config: { scope: 'admin', confined: 'queue' },
    },
    async ({ api, params, body }) =>
      queueToWire(await api.putQueue(params.name, queueDraftFromWire(body))),
  );

  app.patch(
    '/api/v1/queues/:name',
    {
      schema: {
        tags,
        operationId: 'changeQueue',
        summary: 'Change part of the configuration of a queue',
        description:
          'What is absent stays as it is, also what another call changes at the same time. Makes the queue ' +
          'when there is none. Counts for the very next take.',
        params: queueParamsSchema,
        body: queueChangeSchema,
        response: { 200: queueSchema },
      },
      config: { scope: 'admin', confined: 'queue' },
    },
    async ({ api, params, body }) =>
      queueToWire(await api.changeQueue(params.name, queueDraftFromWire(body))),
  );

  app.post(
    '/api/v1/queues/:name/pause',
    {
      schema: {
        tags,
        operationId: 'pauseQueue',
        summary: 'Pause a queue',
        description: 'What runs goes on; nothing more is taken.',
        params: queueParamsSchema,
        body: pauseSchema,
        response: { 200: queueSchema },
      },
      config: { scope: 'admin', confined: 'queue' },
    },
    async ({ api, params, body }) => {
      const until = body.until === undefined ? undefined : timestampFromWire(body.until);
      return queueToWire(await api.pauseQueue(params.name, until));
    },
  );

  app.post(
    '/api/v1/queues/:name/resume',
    {
      schema: {
        tags,
        operationId: 'resumeQueue',
        summary: 'Resume a queue',
        params: queueParamsSchema,
        body: emptySchema,
        response: { 200: queueSchema },
      },
      config: { scope: 'admin', confined: 'queue' },
    },
    async ({ api, params }) => queueToWire(await api.resumeQueue(params.name)),
  );
}
