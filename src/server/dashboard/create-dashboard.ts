import type { LightMyRequestResponse as Injected } from 'fastify';
import { onBehalfOfHeader } from '../../protocol/caller.js';
import { securityHeaders } from '../security-headers.js';
import { assetCacheControl, findAsset, takesGzip } from './assets.js';
import { inTheirNames, MountedApp, type Mountable } from './mounted-app.js';
import { peerOf } from './peer.js';
import { dashboardPolicy, renderDashboardPage } from './page.js';
import { hideAll, redacting, type Redact } from './redact.js';
import { refusal } from './refusal.js';
import { abilitiesOfRole, roles, scopesFor, type Role } from './roles.js';
import { webStreamOf } from './web-stream.js';

/**
 * Who looks at the dashboard. `name` says in the audit trail who changed something, else the role does; `address` from
 * where. Absent: `toNodeHandler` knows who is connected.
 */
export type Viewer =
  Role | { readonly role: Role; readonly name: string; readonly address?: string };

export interface DashboardOptions {
  /** Where it is mounted, for example `/admin/queues`. Default `/`. */
  readonly basePath?: string;
  /**
   * Decides about every request. Null: 401. A Response is answered as it is, for example a redirect to a page where
   * people sign in.
   */
  readonly authorize: (request: Request) => Answer | Promise<Answer>;
  /** Hides parameters, results and errors of tasks: all of them, or as the function says. */
  readonly redact?: boolean | Redact;
  /** A badge, for example `production`. */
  readonly environment?: string;
}

type Answer = Viewer | Response | null;

export type FetchHandler = (request: Request) => Promise<Response>;

const maxBodyBytes = 1024 * 1024;
/** What would say who calls, or from where: that is for `authorize` to say. */
const notForwarded = new Set([
  ...['cookie', 'authorization', onBehalfOfHeader, 'x-forwarded-for', 'forwarded'],
  ...['content-length', 'transfer-encoding'],
]);
const ofTheConnection = new Set(['connection', 'transfer-encoding', 'keep-alive']);

/** The dashboard and the calls it makes, as one handler. Its pages and calls all begin with `basePath`. */
export function createDashboard(sluice: Mountable, options: DashboardOptions): FetchHandler {
  const base = `/${(options.basePath ?? '').replace(/^\/+|\/+$/g, '')}`.replace(/^\/$/, '');
  const redact = redactOf(options);
  const named = inTheirNames(sluice.api);
  const api = redact === null ? named : redacting(named, redact);
  let mounted: MountedApp | null = null;

  return async (request) => {
    const { pathname, search } = new URL(request.url);
    if (pathname !== base && !pathname.startsWith(`${base}/`)) return notFound(pathname);
    const said = await options.authorize(request);
    if (said instanceof Response) return said;
    if (said === null)
      return refusal('unauthorized', 'You are not signed in, or may not see this page.');
    const viewer = typeof said === 'string' ? { role: said, name: said } : said;
    const { role, name, address = peerOf(request) } = viewer;
    if (!roles.includes(role))
      throw new TypeError(`authorize answered ${role}, not one of ${roles.join(', ')}`);
    mounted ??= new MountedApp(api, sluice.events);
    const path = pathname.slice(base.length);
    if (path === '' || path === '/') {
      const config = {
        name: typeof said === 'string' ? null : said.name,
        may: abilitiesOfRole(role),
        has: await mounted.optionalPages(),
        environment: options.environment ?? null,
        canSignOut: false,
        isRedacted: redact !== null,
      };
      return pageAnswer(renderDashboardPage(config, prefixFrom(pathname)));
    }
    if (path.startsWith('/assets/')) return assetAnswer(request, path.slice('/assets/'.length));
    if (!path.startsWith('/api/v1/')) return notFound(pathname);
    const scopes = scopesFor(role, request.method, path);
    return forward(
      mounted,
      request,
      `${path}${search}`,
      mounted.cookieOf({ name, address, scopes }),
    );
  };
}

function redactOf({ redact = false }: DashboardOptions): Redact | null {
  if (typeof redact === 'function') return redact;
  return redact ? hideAll : null;
}

/** From `/admin/queues` the folder is `queues/`, from `/admin/queues/` it is the same one. */
function prefixFrom(pathname: string): string {
  const last = pathname.slice(pathname.lastIndexOf('/') + 1);
  return last === '' ? './' : `./${last}/`;
}

function pageAnswer(page: string): Response {
  const headers = {
    ...securityHeaders,
    'content-security-policy': dashboardPolicy,
    'content-type': 'text/html; charset=utf-8',
  };
  return new Response(page, { headers });
}

function assetAnswer(request: Request, name: string): Response {
  const asset = findAsset(name);
  if (asset === null) return notFound(name);
  const isGzipped = takesGzip(request.headers.get('accept-encoding'));
  const headers = {
    ...securityHeaders,
    'content-type': asset.contentType,
    'cache-control': assetCacheControl,
    vary: 'accept-encoding',
    ...(isGzipped ? { 'content-encoding': 'gzip' } : {}),
  };
  return new Response(new Uint8Array(isGzipped ? asset.gzipped : asset.bytes), { headers });
}

async function forward(
  { app }: MountedApp,
  request: Request,
  url: string,
  cookie: string,
): Promise<Response> {
  const payload = await readBody(request);
  if (payload === null) return refusal('payload_too_large', 'The dashboard sends 1 MiB at most.');
  const headers = [...request.headers].filter(([name]) => !notForwarded.has(name));
  const host = request.headers.get('host') ?? new URL(request.url).host;
  await app.ready();
  // `inject` throws where nobody can catch it when its signal has aborted before.
  if (request.signal.aborted) return toNobody();
  const injected = app.inject({
    method: request.method as 'GET',
    url,
    headers: { ...Object.fromEntries(headers), host, cookie },
    ...(payload.length === 0 ? {} : { payload }),
    payloadAsStream: true,
    signal: request.signal,
  });
  // It begins with `then`, and `await` would call that in a later turn: the signal may abort until then.
  return injected.then(toFetchResponse);
}

function toFetchResponse(answer: Injected): Response {
  const told = Object.entries(answer.headers)
    .filter(([name]) => !ofTheConnection.has(name))
    .flatMap(([name, value]) => [value].flat().map((one): [string, string] => [name, String(one)]));
  const hasBody = answer.statusCode !== 204 && answer.statusCode !== 304;
  const body = hasBody ? bodyOf(answer) : null;
  return new Response(body, { status: answer.statusCode, headers: told });
}

function bodyOf(answer: Injected): ReadableStream {
  const stream = answer.stream();
  const { res: response } = answer.raw;
  // Nothing is sent to its connection, so that nothing there would be unread.
  Object.defineProperty(response, 'writableLength', { get: () => stream.readableLength });
  return webStreamOf(stream, () => response.destroy());
}

/** Null: it is too long, and not read to its end. */
async function readBody(request: Request): Promise<Buffer | null> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (request.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > maxBodyBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** To somebody who has left: nobody reads it. */
function toNobody(): Response {
  return new Response(null, { status: 499 });
}

function notFound(path: string): Response {
  return refusal('route_not_found', `There is no ${path}`);
}
