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
}
