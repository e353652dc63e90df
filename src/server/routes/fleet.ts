import { emptySchema } from '../../protocol/common-schema.js';
import { workerIdFromWire } from '../../protocol/common-wire.js';
import {
  listWorkersQuerySchema,
  workerPageSchema,
  workerParamsSchema,
  workerSchema,
} from '../../protocol/workers-schema.js';
import { workerPageToWire, workerToWire } from '../../protocol/workers-wire.js';
import type { App, AppParts } from '../app-parts.js';
import { pageOf } from './page.js';

const tags = ['Fleet'];

/** Workers, as people see them. */
export function fleetRoutes(app: App, { api }: AppParts): void {
  app.get(
    '/api/v1/workers',
    {
      schema: {
        tags,
        summary: 'List workers',
        querystring: listWorkersQuerySchema,
        response: { 200: workerPageSchema },
      },
      config: { scope: 'read' },
    },
    async ({ query }) => workerPageToWire(await api.listWorkers(pageOf(query))),
  );

  app.get(
    '/api/v1/workers/:worker_id',
    {
      schema: {
        tags,
        summary: 'Get a worker',
        params: workerParamsSchema,
        response: { 200: workerSchema },
      },
      config: { scope: 'read', refusals: ['worker_not_found'] },
    },
    async ({ params }) => workerToWire(await api.getWorker(workerIdFromWire(params.worker_id))),
  );

  app.post(
    '/api/v1/workers/:worker_id/drain',
    {
      schema: {
        tags,
        summary: 'Ask a worker to finish what it has and leave',
        params: workerParamsSchema,
        body: emptySchema,
        response: { 200: workerSchema },
      },
      config: { scope: 'admin', refusals: ['worker_not_found'] },
    },
    async ({ params }) => workerToWire(await api.drainWorker(workerIdFromWire(params.worker_id))),
  );
}
