import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { allows, scopes } from '../../src/domain/scopes.js';
import { buildApp } from '../../src/server/app.js';
import { isOfWorkers } from '../../src/server/lobby.js';
import type { ScopedRoute } from '../../src/server/route-scopes.js';
import { useKeyedHttp } from './keyed.js';
import { unknownId, type Call } from './support.js';

const http = useKeyedHttp();

/** One that fits the route and leads to nothing: what is let in is refused for another reason. */
function callOf({ method, path }: ScopedRoute): Call {
  const url = path
    .replace(/:(task_id|worker_id)/, unknownId)
    .replace(/:(name|key_id)/, 'nobody-made-this');
  // A stream would not end.
  const query = path === '/api/v1/events' ? '?no_such_filter=1' : '';
  const takesBody = ['POST', 'PUT', 'PATCH'].includes(method);
  return { method, url: url + query, ...(takesBody ? { body: { no_such_field: 1 } } : {}) };
}

describe('every route × every scope × no key', () => {
  it('R-AD6: is let in or refused exactly as its scope says', async () => {
    const routes = http().app.scopedRoutes();
    expect(routes.length).toBeGreaterThan(50);
    const wrong: string[] = [];
    const note = (route: ScopedRoute, key: string, status: number, allowed: boolean) => {
      const expected = key === 'no key' ? 401 : 403;
      const isRight = allowed ? status !== 401 && status !== 403 : status === expected;
      if (!isRight) wrong.push(`${route.method} ${route.path} with ${key}: ${status}`);
    };
    for (const route of routes) {
      const call = callOf(route);
      const open = await http().call(call, null);
      note(route, 'no key', open.status, route.scope === 'open');
      for (const scope of scopes) {
        const { status } = await http().call(call, http().keys[scope]);
        note(route, scope, status, allows([scope], route.scope));
      }
    }
    expect(wrong).toEqual([]);
  });

  it('R-AD6: workers call their own routes, and people with admin change queues and replay', () => {
    const scopeOf = (method: string, path: string) =>
      http()
        .app.scopedRoutes()
        .find((route) => route.method === method && route.path === path)?.scope;
    const internal = http()
      .app.scopedRoutes()
      .filter(({ path }) => path.startsWith('/internal/'));
    expect(internal.every(({ scope }) => scope === 'worker')).toBe(true);
    expect(scopeOf('PUT', '/api/v1/queues/:name')).toBe('admin');
    expect(scopeOf('POST', '/api/v1/dlq/replay')).toBe('admin');
    expect(scopeOf('POST', '/api/v1/tasks/:task_id/replay')).toBe('admin');
    expect(scopeOf('GET', '/api/v1/events')).toBe('read');
    expect(scopeOf('GET', '/healthz')).toBe('open');
  });

  it('R-AD3: the lobby knows exactly the calls of workers, which it lets in first', () => {
    const routes = http().app.scopedRoutes();
    const ofWorkers = routes.filter(({ scope }) => scope === 'worker');
    expect(ofWorkers.length).toBeGreaterThan(5);
    expect(routes.filter(({ path }) => isOfWorkers(path))).toEqual(ofWorkers);
  });

  it('R-AD6: a route that does not say its scope does not start', async () => {
    const { app, engine } = http();
    expect(() => app.swagger()).not.toThrow();
    const other = buildApp({
      api: engine,
      health: {
        degradation: () => null,
        readiness: async () => ({ ready: true }),
        progress: async () => ({ progressing: true }),
      },
      events: engine,
      metrics: { contentType: 'text/plain', text: async () => '' },
      log: pino({ level: 'silent' }),
      doors: { openMetrics: true },
    });
    expect(() => other.get('/forgotten', () => 'secret')).toThrow('does not say its scope');
    await other.ready();
    const metrics = other.scopedRoutes().find(({ path }) => path === '/metrics');
    expect(metrics?.scope).toBe('open');
    await other.close();
  });
});
