import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import { fastify, type FastifyBaseLogger } from 'fastify';
import { describe, expect, it, onTestFinished } from 'vitest';

import { until } from '../../test/support/until.js';
import { silentLog } from '../runtime/log.js';
import type { App } from './app-parts.js';
import { Overload } from './overload.js';

const many = 600;

describe('a server that has more to do than it can', () => {
  it('R-AD3: refuses submits and says when to come back, and answers all else', async () => {
    const { app, overload, answerAll } = startApp();
    const waiting = submitMany(app, many);
    await until('all of them to be under way', () => answerAll.waiting === many);
    beLate(overload, 5_000);

    const refused = await app.inject({ method: 'POST', url: '/submit' });
    expect(refused.statusCode).toBe(429);
    expect(refused.json()).toMatchObject({ code: 'refused', instance: '/submit' });
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(overload.refused).toBe(1);
    for (const url of ['/health', '/poll']) {
      expect((await app.inject({ url })).statusCode).toBe(200);
    }

    answerAll.now();
    for (const { statusCode } of await waiting) expect(statusCode).toBe(200);
  });

  it('takes them again when it is no longer late', async () => {
    const { app, overload, answerAll } = startApp();
    const waiting = submitMany(app, many);
    await until('all of them to be under way', () => answerAll.waiting === many);
    beLate(overload, 5_000);
    answerAll.now();
    await waiting;
    beOnTime(overload, 6_000);
    expect((await app.inject({ method: 'POST', url: '/submit' })).statusCode).toBe(200);
  });

  it('refuses nobody because the machine is slow while few submits are under way', async () => {
    const { app, overload, answerAll } = startApp();
    answerAll.now();
    beLate(overload, 60_000);
    expect((await app.inject({ method: 'POST', url: '/submit' })).statusCode).toBe(200);
  });

  it('R-AD2: refuses nobody who may pass all ceilings', async () => {
    const { app, overload, answerAll } = startApp({ passesCeilings: true });
    const waiting = submitMany(app, many);
    await until('all of them to be under way', () => answerAll.waiting === many);
    beLate(overload, 5_000);
    answerAll.now();
    expect((await app.inject({ method: 'POST', url: '/submit' })).statusCode).toBe(200);
    await waiting;
  });
});

const lateMs = 200;
const everyMs = 50;

function beLate(overload: Overload, forMs: number): void {
  for (let ms = 0; ms < forMs; ms += lateMs) overload.look(lateMs);
}

function beOnTime(overload: Overload, forMs: number): void {
  for (let ms = 0; ms < forMs; ms += everyMs) overload.look(everyMs);
}

function submitMany(app: App, length: number) {
  return Promise.all(Array.from({ length }, () => app.inject({ method: 'POST', url: '/submit' })));
}

/** Submits that are answered all at once, when the test wants it. */
class AnswerAll {
  waiting = 0;
  #answer: () => void = () => undefined;
  readonly #answered = new Promise<void>((resolve) => (this.#answer = resolve));

  now(): void {
    this.#answer();
  }

  async wait(): Promise<void> {
    this.waiting += 1;
    await this.#answered;
  }
}

function startApp({ passesCeilings = false } = {}) {
  const loggerInstance: FastifyBaseLogger = silentLog;
  const app: App = fastify({ loggerInstance }).withTypeProvider<TypeBoxTypeProvider>();
  const overload = new Overload(() => 0);
  const answerAll = new AnswerAll();
  app.decorateRequest('holder', null);
  app.addHook('onRequest', (request, _reply, done) => {
    request.holder = { keyId: '1', owner: '1', name: 'ci', scopes: ['submit'], passesCeilings };
    done();
  });
  overload.watch(app);
  app.post('/submit', { config: { isShed: true } }, async () => {
    await answerAll.wait();
    return {};
  });
  app.get('/health', () => ({}));
  app.get('/poll', () => ({}));
  onTestFinished(() => app.close());
  return { app, overload, answerAll };
}
