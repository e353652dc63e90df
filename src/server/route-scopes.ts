import type { RouteScope } from '../domain/scopes.js';
import type { App } from './app-parts.js';

declare module 'fastify' {
  interface FastifyInstance {
    /** All that were added so far. */
    scopedRoutes(): readonly ScopedRoute[];
  }
  interface FastifyContextConfig {
    /** What a caller must be allowed to. A route that does not say so does not start. */
    scope?: RouteScope;
  }
}

export interface ScopedRoute {
  readonly method: string;
  readonly path: string;
  readonly scope: RouteScope;
}

/**
 * Remembers every route that comes after it and who may call it: the table in the docs comes from
 * this, and what the tests walk.
 */
export function watchRouteScopes(app: App): void {
  const routes: ScopedRoute[] = [];
  app.decorate('scopedRoutes', () => routes);
  app.addHook('onRoute', ({ method, url, config }) => {
    const scope = config?.scope;
    if (scope === undefined) throw new Error(`${String(method)} ${url} does not say its scope`);
    for (const name of [method].flat()) routes.push({ method: name, path: url, scope });
  });
}
