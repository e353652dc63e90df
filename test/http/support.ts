import type { Socket } from 'node:net';
import { afterAll, beforeAll } from 'vitest';
import type { ErrorCode } from '../../src/domain/errors.js';
import { openEngine, type Engine } from '../../src/engine/open-engine.js';
import { silentLog } from '../../src/runtime/log.js';
import { buildApp } from '../../src/server/app.js';
import type { App } from '../../src/server/app-parts.js';
import { createMetrics } from '../../src/server/metrics.js';
import { freshPglite } from '../support/pglite.js';
import { refuseUndeclared, watchDeclared } from './declared.js';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | number | undefined>>;
  readonly body: string;
  /** The body as JSON, with its type left to the test. */
  json<Wire = Record<string, unknown>>(): Readonly<Wire>;
}

export interface Problem {
  code: ErrorCode;
  status: number;
  detail: string;
  errors?: { path: string; message: string }[];
}

/** A call as a client in any language would make it. */
export interface Call {
  readonly method?: string;
  readonly url: string;
  /** Anything but text and bytes is sent as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface HttpUnderTest {
  readonly app: App;
  readonly engine: Engine;
  call(call: Call): Promise<Answer>;
}

/** The real engine on embedded Postgres behind the real routes: one for all tests of a file. */
export function useHttp(): () => HttpUnderTest {
  let under: HttpUnderTest;
  beforeAll(async () => {
    under = await openHttp();
  });
  afterAll(async () => {
    await under.app.close();
    await under.engine.close();
  });
  return () => under;
}

async function openHttp(): Promise<HttpUnderTest> {
  const engine = await openEngine({ database: freshPglite() });
  const app = buildApp({
    api: engine,
    health: {
      degradation: () => null,
      readiness: async () => ({ ready: true }),
      progress: async () => ({ progressing: true }),
    },
    events: engine,
    metrics: createMetrics(engine, engine),
    log: silentLog,
  });
  watchDeclared(app);
  await app.ready();
  return { app, engine, call: (call) => inject(app, call) };
}

export async function inject(
  app: App,
  { method = 'GET', url, body, headers = {} }: Call,
): Promise<Answer> {
  const raw = typeof body === 'string' || Buffer.isBuffer(body);
  const response = await app.inject({
    method: method as 'GET',
    url,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { payload: raw ? body : JSON.stringify(body) }),
  });
  refuseUndeclared(app);
  return {
    status: response.statusCode,
    headers: response.headers,
    body: response.body,
    json: () => response.json(),
  };
}

export function post(url: string, body?: unknown, headers?: Record<string, string>): Call {
  return {
    method: 'POST',
    url,
    ...(body === undefined ? {} : { body }),
    ...(headers === undefined ? {} : { headers }),
  };
}

export const unknownId = '0197f0c4-8a3b-7c21-9d55-3f0f5a1c2b3d';
export const staleLease = '3f1d7a52-0c8e-4b6f-9a41-5d2e8c7b6a90';

/** Everything that comes out of a socket until it is closed. */
export async function readAll(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
