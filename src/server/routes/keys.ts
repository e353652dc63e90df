import {
  createdKeySchema,
  keyDraftSchema,
  keyPageSchema,
  keyParamsSchema,
  keySchema,
  listKeysQuerySchema,
} from '../../protocol/keys-schema.js';
import {
  createdKeyToWire,
  keyDraftFromWire,
  keyPageToWire,
  keyToWire,
} from '../../protocol/keys-wire.js';
import type { App, AppParts } from '../app-parts.js';
import { pageOf } from './page.js';

const tags = ['Keys'];

export function keyRoutes(app: App, { api }: AppParts): void {
  app.post(
    '/api/v1/keys',
    {
      schema: {
        tags,
        summary: 'Make an API key',
        description: 'From the first one on every call needs a key.',
        body: keyDraftSchema,
        response: { 201: createdKeySchema },
      },
      config: { scope: 'admin' },
    },
    async ({ body }, reply) =>
      reply.code(201).send(createdKeyToWire(await api.createKey(keyDraftFromWire(body)))),
  );

  app.get(
    '/api/v1/keys',
    {
      schema: {
        tags,
        summary: 'List API keys, also those that ended',
        querystring: listKeysQuerySchema,
        response: { 200: keyPageSchema },
      },
      config: { scope: 'admin' },
    },
    async ({ query }) => keyPageToWire(await api.listKeys(pageOf(query))),
  );

  app.delete(
    '/api/v1/keys/:key_id',
    {
      schema: {
        tags,
        summary: 'Revoke an API key',
        description:
          'It counts on every server within seconds, also for calls that wait. Again gives the ' +
          'same answer.',
        params: keyParamsSchema,
        response: { 200: keySchema },
      },
      config: { scope: 'admin', refusals: ['key_not_found'] },
    },
    async ({ params }) => keyToWire(await api.revokeKey(params.key_id)),
  );
}
