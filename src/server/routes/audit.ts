import { auditPageSchema, listAuditQuerySchema } from '../../protocol/audit-schema.js';
import { auditFilterFromWire, auditPageToWire } from '../../protocol/audit-wire.js';
import type { App } from '../app-parts.js';
import { pageOf } from './page.js';

export function auditRoutes(app: App): void {
  app.get(
    '/api/v1/audit',
    {
      schema: {
        tags: ['Audit'],
        operationId: 'listAudit',
        summary: 'Who changed what, newest first',
        description:
          'Every change of a queue, a shared limit, an API key or an alert rule, sign-ins, drains and ' +
          'every bulk action. Kept for 365 days (`--audit-days`).',
        querystring: listAuditQuerySchema,
        response: { 200: auditPageSchema },
      },
      config: { scope: 'admin', confined: 'refused' },
    },
    async ({ api, query }) =>
      auditPageToWire(await api.listAudit(auditFilterFromWire(query), pageOf(query))),
  );
}
