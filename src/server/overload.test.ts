import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import { fastify, type FastifyBaseLogger } from 'fastify';
import { describe, expect, it, onTestFinished } from 'vitest';

import { unconfined } from '../domain/confinement.js';
import { silentLog } from '../runtime/log.js';
import type { App } from './app-parts.js';
import { Overload } from './overload.js';

describe('a server that has more to do than it can', () => {
  it('R-AD3: refuses submits that waited, says when to come back, and answers all else', async () => {
    const { app, refused: count, submit } = startApp();
    await beLate(submit);
    const refused = await submit(late);
    expect(refused.statusCode).toBe(429);
    expect(refused.json()).toMatchObject({ code: 'refused', instance: '/submit' });
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(count()).toBe(2);
    for (const url of ['/health', '/poll']) {
      expect((await app.inject({ url })).statusCode).toBe(200);
    }
    expect((await submit(0)).statusCode).toBe(200);
  });

  it('takes them again when nobody has waited for a while', async () => {
    const { submit } = startApp();
    await beLate(submit);
    for (let ms = 0; ms <= 2_000; ms += 100) await submit(0, 100);
    expect((await submit(late)).statusCode).toBe(200);
  });

  it('R-AD3: refuses nothing of a burst', async () => {
    const { refused, submit } = startApp();
    for (let count = 0; count < 100; count += 1) await submit(late, 4);
    expect(refused()).toBe(0);
  });

  it('R-AD2: refuses nobody who may pass all ceilings', async () => {
    const { submit } = startApp({ passesCeilings: true });
    await beLate(submit);
    expect((await submit(late)).statusCode).toBe(200);
  });
});

const late = 200;

type Submit = ReturnType<typeof startApp>['submit'];

/** The last one comes when it has lasted for too long. */
async function beLate(submit: Submit): Promise<void> {
  for (const passedMs of [0, 300, 300]) await submit(late, passedMs);
}

function startApp({ passesCeilings = false } = {}) {
  const loggerInstance: FastifyBaseLogger = silentLog;
  const app: App = fastify({ loggerInstance }).withTypeProvider<TypeBoxTypeProvider>();
  let nowMs = 0;
  let refused = 0;
  const overload = new Overload({
    onRefused: () => {
      refused += 1;
    },
    random: () => 0,
    nowMs: () => nowMs,
  });
  app.decorateRequest('holder', null);
  app.addHook('onRequest', (request, _reply, done) => {
    request.holder = {
      ...{ keyId: '1', owner: '1', name: 'ci', scopes: ['submit'], passesCeilings },
      confinement: unconfined,
    };
    done();
  });
  overload.watch(app, { waitedMs: ({ headers }) => Number(headers['x-waited-ms'] ?? 0) });
  app.post('/submit', { config: { isShed: true } }, () => ({}));
  app.get('/health', () => ({}));
  app.get('/poll', () => ({}));
  onTestFinished(() => app.close());
  const submit = (waitedMs: number, passedMs = 0) => {
    nowMs += passedMs;
    const headers = { 'x-waited-ms': String(waitedMs) };
    return app.inject({ method: 'POST', url: '/submit', headers });
  };
  return { app, refused: () => refused, submit };
}
