import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { findServiceError } from './service-errors.js';

const nowMs = Date.UTC(2026, 0, 31, 12, 0, 0);

/** Without what only the worker needs to know. */
function said(thrown: unknown) {
  const found = findServiceError(thrown, nowMs);
  if (found === null) return null;
  const { code, details, retryAfterSeconds } = found;
  return { code, details, ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }) };
}

function error(fields: object, message = 'no'): Error {
  return Object.assign(new Error(message), fields);
}

/** As their SDKs make them: the class says it, `name` does not. */
class APIConnectionError extends Error {
  readonly status = undefined;
  readonly headers = undefined;
}
class APIConnectionTimeoutError extends APIConnectionError {}

/** As axios keeps them: names as they came, and a way to walk them. */
class AxiosHeaders {
  [name: string]: unknown;
  constructor(headers: object) {
    Object.assign(this, headers);
  }
  [Symbol.iterator]() {
    return Object.entries(this)[Symbol.iterator]();
  }
}

describe('R-RE9: what an error says of the service that was called', () => {
  it.each<[string, unknown, object]>([
    [
      'OpenAI',
      error({
        status: 429,
        code: 'rate_limit_exceeded',
        headers: new Headers({ 'Retry-After': '7' }),
      }),
      { retryAfterSeconds: 7, details: { status: 429, code: 'rate_limit_exceeded' } },
    ],
    [
      'Azure OpenAI, by the millisecond',
      error({ status: 429, headers: { 'retry-after': '1', 'retry-after-ms': '250' } }),
      { retryAfterSeconds: 0.25 },
    ],
    [
      'axios',
      error({
        code: 'ERR_BAD_REQUEST',
        response: { status: 429, headers: new AxiosHeaders({ 'Retry-After': '20' }) },
      }),
      { retryAfterSeconds: 20, details: { status: 429, code: 'ERR_BAD_REQUEST' } },
    ],
    [
      'got',
      error({
        code: 'ERR_NON_2XX_3XX_RESPONSE',
        response: { statusCode: 429, headers: { 'retry-after': '3' } },
      }),
      { retryAfterSeconds: 3, details: { status: 429, code: 'ERR_NON_2XX_3XX_RESPONSE' } },
    ],
    [
      'undici',
      error({
        code: 'UND_ERR_RESPONSE',
        statusCode: 429,
        headers: new Map([['RETRY-AFTER', 'Sat, 31 Jan 2026 12:00:30 GMT']]),
      }),
      { retryAfterSeconds: 30 },
    ],
    ['a response that is thrown itself', new Response(null, { status: 429 }), {}],
    [
      'the cause of the cause',
      error({ cause: error({ cause: error({ status: 429 }) }) }),
      { details: { status: 429 } },
    ],
    ['a time that is over', limited('Sat, 31 Jan 2026 11:00:00 GMT'), { retryAfterSeconds: 0 }],
    ['a time in a list', limited(['5']), { retryAfterSeconds: 5 }],
    ['a time as a number', limited(5), { retryAfterSeconds: 5 }],
  ])('429 is RATE_LIMITED: %s', (_, thrown, expected) => {
    expect(said(thrown)).toMatchObject({ code: 'RATE_LIMITED', ...expected });
  });

  it.each([
    '-5',
    'soon',
    '',
    '2026-01-31',
    '1e3',
    'Someday, 99 Foo 2026 GMT',
    undefined,
    Symbol('x'),
  ])('no time is made of %s', (after) => {
    expect(said(limited(after))).toEqual({
      code: 'RATE_LIMITED',
      details: { status: 429 },
    });
  });

  it.each([502, 503, 504, 529])('%d is UNAVAILABLE', (status) => {
    expect(said(error({ status, headers: { 'Retry-After': '9' } }))).toEqual({
      code: 'UNAVAILABLE',
      retryAfterSeconds: 9,
      details: { status },
    });
  });

  it.each([
    'ECONNREFUSED',
    'ECONNRESET',
    'ENOTFOUND',
    'EAI_AGAIN',
    'ETIMEDOUT',
    'EPIPE',
    'EHOSTUNREACH',
    'ECONNABORTED',
    'UND_ERR_CONNECT_TIMEOUT',
    'UND_ERR_SOCKET',
    'UND_ERR_HEADERS_TIMEOUT',
    'UND_ERR_BODY_TIMEOUT',
  ])('%s is UNAVAILABLE, also as the cause of "fetch failed"', (code) => {
    const expected = { code: 'UNAVAILABLE', details: { code } };
    expect(said(error({ code }))).toEqual(expected);
    expect(said(new TypeError('fetch failed', { cause: error({ code }) }))).toEqual(expected);
  });

  it('the SDKs of OpenAI and Anthropic tell a timeout by its class, the rest by its cause', () => {
    expect(said(new APIConnectionTimeoutError('Request timed out.'))).toEqual({
      code: 'UNAVAILABLE',
      details: { code: 'APIConnectionTimeoutError' },
    });
    const cause = new TypeError('fetch failed', { cause: error({ code: 'ECONNREFUSED' }) });
    expect(said(new APIConnectionError('Connection error.', { cause }))).toEqual({
      code: 'UNAVAILABLE',
      details: { code: 'ECONNREFUSED' },
    });
  });

  it.each<[string, unknown]>([
    ['a plain error', new Error('no')],
    ['what is no object', 'ECONNREFUSED'],
    ['nothing', undefined],
    ['a status that is no error', error({ status: 200 })],
    ['an exit status', error({ status: 1, code: 'ENOENT' })],
    ['a status that is a text', error({ status: '429' })],
    ['a cause too deep', nested(error({ status: 429 }), 5)],
  ])('says nothing: %s', (_, thrown) => {
    expect(said(thrown)).toBeNull();
  });

  it.each([
    [400, false],
    [401, false],
    [402, true],
    [403, false],
    [404, false],
    [405, false],
    [408, true],
    [409, true],
    [410, false],
    [413, false],
    [422, false],
    [425, true],
    [429, true],
    [500, true],
    [501, true],
    [503, true],
    [529, true],
  ])('%d: whether it may be retried: %s', (status, isRetried) => {
    const { finalStatus } = findServiceError(error({ status }), nowMs) ?? {};
    expect(finalStatus).toBe(isRetried ? null : status);
  });

  it.each([
    ['its status', error({ status: 404 }), 'HTTP_404'],
    ['what the service called it', error({ status: 400, code: 'too_long' }), 'too_long'],
    ['not what any client says', error({ status: 400, code: 'ERR_BAD_REQUEST' }), 'HTTP_400'],
    ['the outermost answer', error({ status: 400, cause: error({ status: 503 }) }), 'HTTP_400'],
    [
      'the answer, not the network',
      error({ status: 500, cause: error({ code: 'EPIPE' }) }),
      'HTTP_500',
    ],
    ['401', error({ status: 401, code: 'invalid_api_key' }), 'UNAUTHORIZED'],
    ['403', error({ status: 403 }), 'FORBIDDEN'],
    ['402', error({ status: 402 }), 'QUOTA_EXHAUSTED'],
    ['quota behind a 429', error({ status: 429, code: 'insufficient_quota' }), 'QUOTA_EXHAUSTED'],
    [
      'quota in the body that axios keeps',
      error({ response: { status: 429, data: { error: { code: 'insufficient_quota' } } } }),
      'QUOTA_EXHAUSTED',
    ],
    [
      'quota in the text that got keeps',
      error({ response: { statusCode: 429, body: '{"error":{"type":"insufficient_quota"}}' } }),
      'QUOTA_EXHAUSTED',
    ],
  ])('its code: %s', (_, thrown, code) => {
    expect(findServiceError(thrown, nowMs)?.code).toBe(code);
  });

  it('a code that nobody could look for is left out', () => {
    expect(said(error({ status: 503, code: 'x'.repeat(1_000) }))).toEqual({
      code: 'UNAVAILABLE',
      details: { status: 503 },
    });
  });

  it('hostile errors do no harm', () => {
    const refuse = () => {
      throw new Error('not even this');
    };
    const ring = error({});
    ring.cause = ring;
    expect(said(ring)).toBeNull();
    for (const field of ['status', 'response', 'cause', 'code', 'constructor']) {
      expect(said(Object.defineProperty(error({}), field, { get: refuse }))).toBeNull();
    }
    expect(said(new Proxy({}, { get: refuse }))).toBeNull();
    const headers = { 'x-odd': Object.create(null) as unknown, 'retry-after': '4' };
    expect(said(error({ status: 429, headers }))).toMatchObject({ retryAfterSeconds: 4 });
  });
});

describe('R-RE9: a real fetch', () => {
  it('that nobody answers is UNAVAILABLE', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, 'close');
    const thrown: unknown = await fetch(`http://127.0.0.1:${port}`).catch(
      (caught: unknown) => caught,
    );
    expect(said(thrown)).toEqual({
      code: 'UNAVAILABLE',
      details: { code: 'ECONNREFUSED' },
    });
  });

  it('whose connection breaks off is UNAVAILABLE', async () => {
    const server = createServer((request) => request.socket.destroy()).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const thrown: unknown = await fetch(`http://127.0.0.1:${port}`).catch(
      (caught: unknown) => caught,
    );
    expect(said(thrown)).toMatchObject({ code: 'UNAVAILABLE' });
    server.close();
    await once(server, 'close');
  });
});

function limited(after: unknown): Error {
  return error({ status: 429, headers: { 'retry-after': after } });
}

function nested(innermost: Error, levels: number): Error {
  let outer = innermost;
  for (let i = 0; i < levels; i += 1) outer = error({ cause: outer });
  return outer;
}
