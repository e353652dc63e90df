import {
  limitPageSchema,
  limitParamsSchema,
  limitSchema,
  rateLimitSchema,
} from '../../protocol/queues-schema.js';
import { limitToWire, rateLimitFromWire } from '../../protocol/queues-wire.js';
import { noContentSchema } from '../../protocol/common-schema.js';
import type { App } from '../app-parts.js';

const tags = ['Limits'];

export function limitRoutes(app: App): void {
  app.get(
    '/api/v1/limits',
    {
      schema: {
        tags,
        operationId: 'listLimits',
        summary: 'List shared limits',
        response: { 200: limitPageSchema },
      },
      config: { scope: 'read', confined: 'refused' },
    },
    async ({ api }) => ({ items: (await api.listLimits()).map(limitToWire), next_cursor: null }),
  );

  app.get(
    '/api/v1/limits/:name',
    {
      schema: {
        tags,
        operationId: 'getLimit',
        summary: 'Get a shared limit',
        params: limitParamsSchema,
        response: { 200: limitSchema },
      },
      config: { scope: 'read', confined: 'refused', refusals: ['limit_not_found'] },
    },
    async ({ api, params }) => limitToWire(await api.getLimit(params.name)),
  );

  app.put(
    '/api/v1/limits/:name',
    {
      schema: {
        tags,
        operationId: 'setLimit',
        summary: 'Make or replace a limit that queues can share',
        params: limitParamsSchema,
        body: rateLimitSchema,
        response: { 200: limitSchema },
      },
      config: { scope: 'admin', confined: 'refused' },
    },
    async ({ api, params, body }) =>
      limitToWire(await api.putLimit(params.name, rateLimitFromWire(body))),
  );

  app.delete(
    '/api/v1/limits/:name',
    {
      schema: {
        tags,
        operationId: 'deleteLimit',
        summary: 'Delete a shared limit that no queue uses',
        params: limitParamsSchema,
        response: { 204: noContentSchema },
      },
      config: {
        scope: 'admin',
        confined: 'refused',
        refusals: ['limit_not_found', 'limit_in_use'],
      },
    },
    async ({ api, params }, reply) => {
      await api.deleteLimit(params.name);
      return reply.code(204).send(null);
    },
  );
}
