import {
  createdKeySchema,
  keyDraftSchema,
  keyPageSchema,
  keyParamsSchema,
  keySchema,
  listKeysQuerySchema,
  sessionListSchema,
  sessionParamsSchema,
  sessionSchema,
} from '../../protocol/keys-schema.js';
import {
  createdKeyToWire,
  keyDraftFromWire,
  keyPageToWire,
  keyToWire,
  sessionListToWire,
  sessionToWire,
} from '../../protocol/keys-wire.js';
import type { App } from '../app-parts.js';
import { pageOf } from './page.js';

const tags = ['Keys'];

export function keyRoutes(app: App): void {
  app.post(
    '/api/v1/keys',
    {
      schema: {
        tags,
        operationId: 'createKey',
        summary: 'Make an API key',
        description: 'From the first one on every call needs a key.',
        body: keyDraftSchema,
        response: { 201: createdKeySchema },
      },
      config: { scope: 'admin', confined: 'refused' },
    },
    async ({ api, body }, reply) =>
      reply.code(201).send(createdKeyToWire(await api.createKey(keyDraftFromWire(body)))),
  );

  app.get(
    '/api/v1/keys',
    {
      schema: {
        tags,
        operationId: 'listKeys',
        summary: 'List API keys, also those that ended',
        querystring: listKeysQuerySchema,
        response: { 200: keyPageSchema },
      },
      config: { scope: 'admin', confined: 'refused' },
    },
    async ({ api, query }) => keyPageToWire(await api.listKeys(pageOf(query))),
  );

  app.delete(
    '/api/v1/keys/:key_id',
    {
      schema: {
        tags,
        operationId: 'revokeKey',
        summary: 'Revoke an API key',
        description:
          'Every server refuses it within a second, with all sessions of it and calls that wait. ' +
          'Again gives the same answer.',
        params: keyParamsSchema,
        response: { 200: keySchema },
      },
      config: { scope: 'admin', confined: 'refused', refusals: ['key_not_found'] },
    },
    async ({ api, params }) => keyToWire(await api.revokeKey(params.key_id)),
  );

  app.get(
    '/api/v1/keys/:key_id/sessions',
    {
      schema: {
        tags,
        operationId: 'listKeySessions',
        summary: 'List who signed in with an API key',
        description: 'Sessions that are good, the newest first: 20 at most.',
        params: keyParamsSchema,
        response: { 200: sessionListSchema },
      },
      config: { scope: 'admin', confined: 'refused', refusals: ['key_not_found'] },
    },
    async ({ api, params }) => sessionListToWire(await api.listSessions(params.key_id)),
  );

  app.delete(
    '/api/v1/keys/:key_id/sessions/:session_id',
    {
      schema: {
        tags,
        operationId: 'endKeySession',
        summary: 'Sign somebody out',
        description:
          'Every server refuses the session within a second. Again gives the same answer.',
        params: sessionParamsSchema,
        response: { 200: sessionSchema },
      },
      config: { scope: 'admin', confined: 'refused', refusals: ['session_not_found'] },
    },
    async ({ api, params }) =>
      sessionToWire(await api.endSession(params.key_id, params.session_id)),
  );
}
