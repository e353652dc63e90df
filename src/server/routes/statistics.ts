import { seriesQuerySchema, seriesSchema } from '../../protocol/series-schema.js';
import { seriesRequestFromWire, seriesToWire } from '../../protocol/series-wire.js';
import { attentionSchema, statisticsSchema } from '../../protocol/statistics-schema.js';
import { attentionToWire, statisticsToWire } from '../../protocol/statistics-wire.js';
import type { App } from '../app-parts.js';

export function statisticsRoutes(app: App): void {
  app.get(
    '/api/v1/queue/stats',
    {
      schema: {
        tags: ['Statistics'],
        operationId: 'getStatistics',
        summary: 'How it is going, over all queues',
        response: { 200: statisticsSchema },
      },
      config: { scope: 'read', confined: 'refused' },
    },
    async ({ api }) => statisticsToWire(await api.getStatistics()),
  );

  app.get(
    '/api/v1/attention',
    {
      schema: {
        tags: ['Statistics'],
        operationId: 'getAttention',
        summary: 'Which queues and workers need attention, the worst first',
        description: 'Out of all of them, computed once a second for everybody.',
        response: { 200: attentionSchema },
      },
      config: { scope: 'read', confined: 'refused' },
    },
    async ({ api }) => attentionToWire(await api.getAttention()),
  );

  app.get(
    '/api/v1/series',
    {
      schema: {
        tags: ['Statistics'],
        operationId: 'getSeries',
        summary: 'What happened over time, in one queue or in all',
        description:
          '`held_…_ms` and `no_worker_ms`: for how long tasks were in line and none could start, by cause; in the sum over ' +
          'all queues, the sum of their times. `depth_ms`: tasks in line × time; divided by the step, their average number. ' +
          'These are sampled every 15 s: for all queues together, and for each of the 200 with most in line.',
        querystring: seriesQuerySchema,
        response: { 200: seriesSchema },
      },
      config: { scope: 'read', confined: 'queue', refusals: ['queue_not_found'] },
    },
    async ({ api, query }) => seriesToWire(await api.getSeries(seriesRequestFromWire(query))),
  );
}
