import { emptySchema } from '../../protocol/common-schema.js';
import { workerIdFromWire } from '../../protocol/common-wire.js';
import {
  listWorkersQuerySchema,
  workerDetailSchema,
  workerPageSchema,
  workerParamsSchema,
  workerSchema,
} from '../../protocol/workers-schema.js';
import { workerDetailToWire, workerPageToWire, workerToWire } from '../../protocol/workers-wire.js';
import type { App } from '../app-parts.js';
import { pageOf } from './page.js';

const tags = ['Fleet'];

/** Workers, as people see them. */
export function fleetRoutes(app: App): void {
  app.get(
    '/api/v1/workers',
    {
      schema: {
        tags,
        operationId: 'listWorkers',
        summary: 'List workers',
        querystring: listWorkersQuerySchema,
        response: { 200: workerPageSchema },
      },
      config: { scope: 'read', confined: 'refused' },
    },
    async ({ api, query }) => workerPageToWire(await api.listWorkers(pageOf(query))),
  );

  app.get(
    '/api/v1/workers/:worker_id',
    {
      schema: {
        tags,
        operationId: 'getWorker',
        summary: 'Get a worker',
        params: workerParamsSchema,
        response: { 200: workerDetailSchema },
      },
      config: { scope: 'read', confined: 'refused', refusals: ['worker_not_found'] },
    },
    async ({ api, params }) =>
      workerDetailToWire(await api.getWorker(workerIdFromWire(params.worker_id))),
  );

  app.post(
    '/api/v1/workers/:worker_id/drain',
    {
      schema: {
        tags,
        operationId: 'drainWorker',
        summary: 'Ask a worker to finish what it has and leave',
        params: workerParamsSchema,
        body: emptySchema,
        response: { 200: workerSchema },
      },
      config: { scope: 'admin', confined: 'refused', refusals: ['worker_not_found'] },
    },
    async ({ api, params }) =>
      workerToWire(await api.drainWorker(workerIdFromWire(params.worker_id))),
  );
}
