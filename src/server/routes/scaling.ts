import { scalingSchema } from '../../protocol/scaling-schema.js';
import { scalingToWire } from '../../protocol/scaling-wire.js';
import type { App } from '../app-parts.js';

export function scalingRoutes(app: App): void {
  app.get(
    '/api/v1/scaling',
    {
      schema: {
        tags: ['Statistics'],
        operationId: 'getScaling',
        summary: 'How many workers there should be',
        description:
          "Looked at once per interval, however often it is asked. KEDA's metrics-api scaler reads " +
          '`desired`, or `queues.#(queue=="gpt-4o").waiting`.',
        response: { 200: scalingSchema },
      },
      config: { scope: 'read', confined: 'refused' },
    },
    async ({ api }) => scalingToWire(await api.getScaling()),
  );
}
