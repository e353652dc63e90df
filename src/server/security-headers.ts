import type { FastifyReply } from 'fastify';
import type { App } from './app-parts.js';

/** An answer for programs is never a page, whatever a browser takes it for. */
const plainPolicy = "default-src 'none'; frame-ancestors 'none'";

export const securityHeaders = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'content-security-policy': plainPolicy,
  'cache-control': 'no-store',
};

/** At the beginning of a request, so that refusals and streams have them as well. */
export function setSecurityHeaders(app: App): void {
  app.addHook('onRequest', (_request, reply, done) => {
    reply.headers(securityHeaders);
    done();
  });
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (reply.statusCode === 401) reply.header('www-authenticate', 'Bearer');
    done();
  });
}

/** The pages hold no script and load nothing; their forms come back here. */
const pagePolicy =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; " +
  "frame-ancestors 'none'";

export function sendPage(reply: FastifyReply, page: string): FastifyReply {
  return reply
    .header('content-security-policy', pagePolicy)
    .type('text/html; charset=utf-8')
    .send(page);
}
