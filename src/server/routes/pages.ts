import { Type } from 'typebox';
import type { FastifyReply } from 'fastify';
import { SluiceError } from '../../domain/errors.js';
import { allows, type Scope } from '../../domain/scopes.js';
import type { App, RouteParts } from '../app-parts.js';
import type { Auth } from '../auth.js';
import { assetCacheControl, findAsset, takesGzip } from '../dashboard/assets.js';
import {
  dashboardPolicy,
  optionalPages,
  renderDashboardPage,
  type Abilities,
} from '../dashboard/page.js';
import { renderDocsPage } from '../docs-page.js';
import { outlineOf, type OpenApiDocument } from '../openapi-outline.js';
import { sendPage } from '../security-headers.js';
import { renderSignInPage } from '../sign-in-page.js';

const options = { schema: { hide: true }, config: { scope: 'open' } } as const;

export function pageRoutes(app: App, { keys, environment }: RouteParts, auth: Auth): void {
  let docs: string | null = null;

  app.get('/', options, async (request, reply) => {
    const holder = keys.areNeeded() ? await auth.greet(request) : null;
    if (keys.areNeeded() && holder === null) return sendPage(reply, renderSignInPage());
    const config = {
      name: holder?.name ?? null,
      may: abilities(holder?.scopes ?? ['admin']),
      has: optionalPages(app),
      environment,
      canSignOut: holder !== null,
      isRedacted: false,
    };
    return reply
      .header('content-security-policy', dashboardPolicy)
      .type('text/html; charset=utf-8')
      .send(renderDashboardPage(config, './'));
  });

  app.get(
    '/assets/:file',
    {
      schema: { hide: true, params: Type.Object({ file: Type.String() }) },
      config: { scope: 'open' },
    },
    async ({ params, headers }, reply) => {
      const asset = findAsset(params.file);
      if (asset === null) throw new SluiceError('route_not_found', `There is no ${params.file}`);
      const isGzipped = takesGzip(headers['accept-encoding']);
      if (isGzipped) reply.header('content-encoding', 'gzip');
      return reply
        .header('cache-control', assetCacheControl)
        .header('vary', 'accept-encoding')
        .type(asset.contentType)
        .send(isGzipped ? asset.gzipped : asset.bytes);
    },
  );

  app.get('/docs', options, (_request, reply: FastifyReply) => {
    docs ??= renderDocsPage(outlineOf(app.swagger() as unknown as OpenApiDocument));
    return sendPage(reply, docs);
  });

  app.get('/openapi.json', options, () => app.swagger());
}

function abilities(granted: readonly Scope[]): Abilities {
  const isAdmin = allows(granted, 'admin');
  return {
    read: allows(granted, 'read'),
    submit: allows(granted, 'submit'),
    operate: isAdmin,
    admin: isAdmin,
  };
}
