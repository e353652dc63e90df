import type { FastifyReply } from 'fastify';
import type { KeyHolder } from '../../engine/api-keys.js';
import type { App, RouteParts } from '../app-parts.js';
import type { Auth } from '../auth.js';
import { renderDocsPage } from '../docs-page.js';
import { renderHomePage, type Visitor } from '../home-page.js';
import { outlineOf, type OpenApiDocument } from '../openapi-outline.js';
import { sendPage } from '../security-headers.js';

const anybody: Visitor = { kind: 'anybody' };
const options = { schema: { hide: true }, config: { scope: 'open' } } as const;

export function pageRoutes(app: App, { keys }: RouteParts, auth: Auth): void {
  let docs: string | null = null;

  app.get('/', options, async (request, reply) => {
    const visitor = keys.areNeeded() ? toVisitor(await auth.greet(request)) : anybody;
    return sendPage(reply, renderHomePage(visitor));
  });

  app.get('/docs', options, (_request, reply: FastifyReply) => {
    docs ??= renderDocsPage(outlineOf(app.swagger() as unknown as OpenApiDocument));
    return sendPage(reply, docs);
  });

  app.get('/openapi.json', options, () => app.swagger());
}

function toVisitor(holder: KeyHolder | null): Visitor {
  if (holder === null) return { kind: 'stranger' };
  return { kind: 'signed in', name: holder.name, scopes: holder.scopes };
}
