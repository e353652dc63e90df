import type { FastifyReply } from 'fastify';
import type { App } from '../app-parts.js';
import { renderDocsPage } from '../docs-page.js';
import { renderHomePage } from '../home-page.js';
import { outlineOf, type OpenApiDocument } from '../openapi-outline.js';

const options = { schema: { hide: true }, config: { scope: 'open' } } as const;
/** The pages hold no script and load nothing. */
const policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

export function pageRoutes(app: App): void {
  const home = renderHomePage();
  let docs: string | null = null;

  app.get('/', options, (_request, reply: FastifyReply) => sendPage(reply, home));

  app.get('/docs', options, (_request, reply: FastifyReply) => {
    docs ??= renderDocsPage(outlineOf(app.swagger() as unknown as OpenApiDocument));
    return sendPage(reply, docs);
  });

  app.get('/openapi.json', options, () => app.swagger());
}

function sendPage(reply: FastifyReply, page: string): FastifyReply {
  return reply
    .header('content-security-policy', policy)
    .type('text/html; charset=utf-8')
    .send(page);
}
