import { seriesQuerySchema, seriesSchema } from '../../protocol/series-schema.js';
import { seriesRequestFromWire, seriesToWire } from '../../protocol/series-wire.js';
import { statisticsSchema } from '../../protocol/statistics-schema.js';
import { statisticsToWire } from '../../protocol/statistics-wire.js';
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
    '/api/v1/series',
    {
      schema: {
        tags: ['Statistics'],
        operationId: 'getSeries',
        summary: 'What happened over time, in one queue or in all',
        querystring: seriesQuerySchema,
        response: { 200: seriesSchema },
      },
      config: { scope: 'read', confined: 'queue', refusals: ['queue_not_found'] },
    },
    async ({ api, query }) => seriesToWire(await api.getSeries(seriesRequestFromWire(query))),
  );
}
