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
    /** What it is for a key that is confined. A route that does not say so does not start. */
    confined?: RouteConfinement;
  }
}

/**
 * `task`: one task, and one that the key does not reach is answered as one that does not exist. `filtered`:
 * of all it holds what the key reaches. `queue`: names queues, and others are refused. `worker`: ids that
 * the key registered, and tasks of the queues that it reaches. `refused`: it concerns everything.
 */
export type RouteConfinement = 'task' | 'filtered' | 'queue' | 'worker' | 'refused';

export interface ScopedRoute {
  readonly method: string;
  readonly path: string;
  readonly scope: RouteScope;
  /** Null: it is open, and nothing of the tasks is in it. */
  readonly confined: RouteConfinement | null;
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
    const confined = config?.confined ?? null;
    if (confined === null && scope !== 'open') {
      throw new Error(`${String(method)} ${url} does not say what it is for a confined key`);
    }
    for (const name of [method].flat()) routes.push({ method: name, path: url, scope, confined });
  });
}
