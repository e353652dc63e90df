import type { App } from '../../src/server/app-parts.js';
import type { OpenApi } from './openapi.js';

/** Every answer is one that the document declares for its route. To be called before the app is ready. */
export function watchDeclared(app: App): void {
  const undeclared = new Set<string>();
  undeclaredOf.set(app, undeclared);
  app.addHook('onResponse', (request, reply, done) => {
    const { url, schema } = request.routeOptions;
    const isDescribed = url !== undefined && schema !== undefined && !('hide' in schema);
    if (isDescribed && !isDeclared(app, request.method, url, reply.statusCode)) {
      undeclared.add(`${request.method} ${url} answered ${reply.statusCode}`);
    }
    done();
  });
}

const undeclaredOf = new WeakMap<App, Set<string>>();

export function refuseUndeclared(app: App): void {
  const undeclared = [...(undeclaredOf.get(app) ?? [])];
  if (undeclared.length > 0) throw new Error(`not in the OpenAPI document: ${undeclared.join()}`);
}

function isDeclared(app: App, method: string, url: string, status: number): boolean {
  if (method === 'HEAD' || method === 'OPTIONS') return true;
  const path = url.replace(/:(\w+)/g, '{$1}');
  const { paths } = app.swagger() as unknown as OpenApi;
  return String(status) in (paths[path]?.[method.toLowerCase()]?.responses ?? {});
}
