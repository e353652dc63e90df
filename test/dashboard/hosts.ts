import { serve as serveFetch } from '@hono/node-server';
import KoaRouter from '@koa/router';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { toNodeHandler, type FetchHandler } from '../../src/server/dashboard/index.js';

/** Where the snippets of docs/dashboard.md mount it. */
export const basePath = '/admin/queues';

export interface Host {
  /** Without a path. */
  readonly url: string;
  close(): Promise<void>;
}

/** Apps of each kind with the dashboard mounted by the very lines of docs/dashboard.md. */
export const hosts: Readonly<Record<string, (dashboard: FetchHandler) => Promise<Host>>> = {
  express: (dashboard) => startExpress(dashboard),
  'express after a parser of bodies': (dashboard) => startExpress(dashboard, express.json()),
  fastify: async (dashboard) => {
    // Else it waits until idle connections of the test's fetch are given up, which takes a minute.
    const app = fastify({ forceCloseConnections: true });
    await runSnippet('Fastify', { app, dashboard });
    const url = await app.listen({ host: '127.0.0.1', port: 0 });
    return { url, close: () => app.close() };
  },
  koa: async (dashboard) => {
    const app = new Koa();
    const router = new KoaRouter();
    await runSnippet('Koa', { router, dashboard });
    app.use(router.routes());
    return listening(app.listen(0, '127.0.0.1'));
  },
  hono: async (dashboard) => {
    const app = new Hono();
    await runSnippet('Hono', { app, dashboard });
    return listening(listen(app.fetch));
  },
  'a route module as in Next.js': async (dashboard) => {
    const route = (await runSnippet('Next.js', { dashboard })) as RouteModule;
    const fetch = (request: Request) => answerAsNext(route, request);
    return listening(listen(fetch));
  },
};

async function startExpress(
  dashboard: FetchHandler,
  ...before: express.RequestHandler[]
): Promise<Host> {
  const app = express();
  if (before.length > 0) app.use(before);
  await runSnippet('Express', { app, dashboard });
  return listening(app.listen(0, '127.0.0.1'));
}

type Fetch = (request: Request) => Response | Promise<Response>;

function listen(fetch: Fetch): Server {
  return serveFetch({ fetch, hostname: '127.0.0.1', port: 0 }) as Server;
}

async function listening(server: Server): Promise<Host> {
  if (!server.listening) await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

type RouteModule = Readonly<Record<string, FetchHandler | undefined>>;

/** A slash at the end is taken away by a redirect, and a method that is not exported is refused. */
async function answerAsNext(route: RouteModule, request: Request): Promise<Response> {
  const url = new URL(request.url);
  if (url.pathname !== basePath && !url.pathname.startsWith(`${basePath}/`)) {
    return new Response('Not found', { status: 404 });
  }
  if (url.pathname.endsWith('/')) {
    url.pathname = url.pathname.slice(0, -1);
    return Response.redirect(url, 308);
  }
  const handler = route[request.method === 'HEAD' ? 'GET' : request.method];
  return handler?.(request) ?? new Response(null, { status: 405 });
}

let snippets = 0;

/** The first code block below the heading, as a module with these names in it. */
async function runSnippet(heading: string, names: Readonly<Record<string, unknown>>) {
  const docs = await readFile(new URL('../../docs/dashboard.md', import.meta.url), 'utf8');
  const [, code] =
    new RegExp(`### ${heading}\\n[^#]*?\`\`\`js\\n(.*?)\`\`\``, 's').exec(docs) ?? [];
  if (code === undefined) throw new Error(`docs/dashboard.md has no code for ${heading}`);
  const given = Object.assign(globalThis, { snippet: { ...names, toNodeHandler } });
  const prelude = `const { ${Object.keys(given.snippet).join(', ')} } = globalThis.snippet;\n`;
  const module = prelude + code.replaceAll(/^import .*$/gm, '');
  // Else the module of the last test were found instead of run.
  snippets += 1;
  const address = `data:text/javascript,${encodeURIComponent(`${module}// ${snippets}`)}`;
  return (await import(/* @vite-ignore */ address)) as unknown;
}
