import {
  alertDraftSchema,
  alertListSchema,
  alertParamsSchema,
  alertSchema,
  alertSilenceSchema,
  listAlertsQuerySchema,
} from '../../protocol/alerts-schema.js';
import {
  alertDraftFromWire,
  alertListToWire,
  alertSilenceFromWire,
  alertToWire,
} from '../../protocol/alerts-wire.js';
import type { App } from '../app-parts.js';

const tags = ['Alerts'];

export function alertRoutes(app: App): void {
  app.get(
    '/api/v1/alerts',
    {
      schema: {
        tags,
        operationId: 'listAlerts',
        summary: 'List alerts',
        description:
          'Every rule, whether it fires or not. A rule that is about queues or error codes is listed once for each that ' +
          'is pending or firing, at most 20.',
        querystring: listAlertsQuerySchema,
        response: { 200: alertListSchema },
      },
      config: { scope: 'read', confined: 'refused' },
    },
    async ({ api, query }) => alertListToWire(await api.listAlerts(query)),
  );

  app.put(
    '/api/v1/alerts/:name',
    {
      schema: {
        tags,
        operationId: 'setAlert',
        summary: 'Change when a rule fires, or turn it off',
        params: alertParamsSchema,
        body: alertDraftSchema,
        response: { 200: alertSchema },
      },
      config: { scope: 'admin', confined: 'refused', refusals: ['alert_not_found'] },
    },
    async ({ api, params, body }) =>
      alertToWire(await api.putAlert(params.name, alertDraftFromWire(body))),
  );

  app.post(
    '/api/v1/alerts/:name/silence',
    {
      schema: {
        tags,
        operationId: 'silenceAlert',
        summary: 'Tell no webhook that a rule fires, for a time',
        description:
          'It is evaluated nevertheless. If it still fires when the silence is over, the webhook is told then.',
        params: alertParamsSchema,
        body: alertSilenceSchema,
        response: { 200: alertSchema },
      },
      config: { scope: 'admin', confined: 'refused', refusals: ['alert_not_found'] },
    },
    async ({ api, params, body }) =>
      alertToWire(await api.silenceAlert(params.name, alertSilenceFromWire(body))),
  );
}
