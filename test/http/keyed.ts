import { afterAll, beforeAll } from 'vitest';
import type { Scope } from '../../src/domain/scopes.js';
import { openEngine, type Engine } from '../../src/engine/open-engine.js';
import type { KeyDraft } from '../../src/protocol/keys-api.js';
import { silentLog, type Logger } from '../../src/runtime/log.js';
import { buildApp } from '../../src/server/app.js';
import type { App, Doors } from '../../src/server/app-parts.js';
import type { ConnectionLimits } from '../../src/server/connection-limits.js';
import { createMetrics } from '../../src/server/metrics.js';
import { freshPglite } from '../support/pglite.js';
import { inject, type Answer, type Call } from './support.js';
import { watchDeclared } from './declared.js';

export interface KeyedHttp {
  readonly app: App;
  readonly engine: Engine;
  /** Of a scope each, and one of all. */
  readonly keys: Readonly<Record<Scope, string>>;
  /** With this key, or without one. */
  call(call: Call, key?: string | null): Promise<Answer>;
  make(draft?: Partial<KeyDraft>): Promise<{ id: string; key: string }>;
}

/** As `useHttp`, on a server that has API keys. */
export function useKeyedHttp(options: { doors?: Partial<Doors>; log?: Logger } = {}) {
  let under: KeyedHttp;
  beforeAll(async () => {
    under = await openKeyed(options);
  });
  afterAll(async () => {
    await under.app.close();
    await under.engine.close();
  });
  return () => under;
}

async function openKeyed({
  doors = {},
  log = silentLog,
}: {
  doors?: Partial<Doors>;
  log?: Logger;
}): Promise<KeyedHttp> {
  const engine = await openEngine({ database: freshPglite(), log });
  await engine.keys.watch();
  const app = buildKeyedApp(engine, { trustProxy: ['127.0.0.1'], ...doors }, log);
  await app.ready();
  const make = async (draft: Partial<KeyDraft> = {}) =>
    engine.createKey({ name: 'a test', scopes: ['admin'], ...draft });
  const keyOf = async (scope: Scope) => (await make({ name: scope, scopes: [scope] })).key;
  const keys = {
    submit: await keyOf('submit'),
    read: await keyOf('read'),
    worker: await keyOf('worker'),
    admin: await keyOf('admin'),
  };
  const call = (one: Call, key: string | null = keys.admin) => {
    const headers = { ...fromElsewhere(), ...one.headers, ...(key === null ? {} : bearer(key)) };
    return inject(app, { ...one, headers });
  };
  return { app, engine, keys, call, make };
}

export function buildKeyedApp(
  engine: Engine,
  doors: Partial<Doors> = {},
  log = silentLog,
  connections: Partial<ConnectionLimits> = {},
): App {
  const app = buildApp({
    connections,
    api: engine,
    health: {
      degradation: () => null,
      readiness: async () => ({ ready: true }),
      progress: async () => ({ progressing: true }),
    },
    events: engine,
    metrics: createMetrics(engine, engine),
    log,
    keys: engine.keys,
    doors,
  });
  watchDeclared(app);
  return app;
}

let calls = 0;

/** Each from an address of its own: bad keys of one test do not count against another. */
function fromElsewhere(): { 'x-forwarded-for': string } {
  calls += 1;
  return { 'x-forwarded-for': `10.1.${calls >> 8}.${calls & 255}` };
}

export function bearer(key: string): { authorization: string } {
  return { authorization: `Bearer ${key}` };
}

/** Where it listens. */
export async function listening(app: App): Promise<string> {
  if (!app.server.listening) await app.listen({ host: '127.0.0.1', port: 0 });
  const address = app.server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return `http://127.0.0.1:${address.port}`;
}
