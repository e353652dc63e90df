import type { App } from './app-parts.js';

const allowedHeaders = 'authorization, content-type, idempotency-key, traceparent';
const readableHeaders = 'retry-after, allow';
const rememberSeconds = '600';

/** Off unless origins are named. No cookie is ever allowed along: a page elsewhere brings a key. */
export function allowOrigins(app: App, origins: readonly string[]): void {
  if (origins.length === 0) return;
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('vary', 'origin');
    const { origin } = request.headers;
    if (origin !== undefined && origins.includes(origin)) {
      reply.header('access-control-allow-origin', origin);
      reply.header('access-control-expose-headers', readableHeaders);
      reply.header('cross-origin-resource-policy', 'cross-origin');
      const method = request.headers['access-control-request-method'];
      if (request.method === 'OPTIONS' && method !== undefined) {
        reply.header('access-control-allow-methods', 'GET, POST, PUT, PATCH, DELETE');
        reply.header('access-control-allow-headers', allowedHeaders);
        reply.header('access-control-max-age', rememberSeconds);
      }
    }
    done();
  });
}
