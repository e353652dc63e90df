import { describe, expect, it } from 'vitest';
import {
  NonRetriableError,
  RateLimitedError,
  RetryAfterError,
  toAttemptError,
  UnavailableError,
} from './errors.js';

describe('toAttemptError', () => {
  it('a plain error is retried under its class', () => {
    expect(toAttemptError(new TypeError('no'))).toEqual({
      code: 'TypeError',
      message: 'no',
      retriable: true,
    });
    expect(toAttemptError(new Error('no'))).toMatchObject({ code: 'ERROR' });
  });

  it("an error's own code is kept, if it can be one", () => {
    const missing = Object.assign(new Error('gone'), { code: 'ENOENT' });
    expect(toAttemptError(missing)).toMatchObject({ code: 'ENOENT' });
    const odd = Object.assign(new Error('gone'), { code: 'two words' });
    expect(toAttemptError(odd)).toMatchObject({ code: 'ERROR' });
  });

  it('NonRetriableError is not retried and keeps code and details', () => {
    const error = new NonRetriableError('bad key', { code: 'BAD_KEY', details: { key: 1 } });
    expect(toAttemptError(error)).toEqual({
      code: 'BAD_KEY',
      message: 'bad key',
      retriable: false,
      details: { key: 1 },
    });
  });

  it('RetryAfterError and RateLimitedError carry their seconds', () => {
    expect(toAttemptError(new RetryAfterError(7))).toMatchObject({
      code: 'RETRY_AFTER',
      retriable: true,
      retryAfterSeconds: 7,
    });
    expect(toAttemptError(new RateLimitedError(20))).toMatchObject({
      code: 'RATE_LIMITED',
      retriable: true,
      retryAfterSeconds: 20,
    });
    expect(toAttemptError(new RateLimitedError())).not.toHaveProperty('retryAfterSeconds');
  });

  it('R-RE9: an error of a service is what its answer says, with the original in its details', () => {
    const headers = new Headers({ 'retry-after': '7' });
    const limited = Object.assign(new Error('429 slow down'), { status: 429, headers });
    expect(toAttemptError(limited)).toEqual({
      code: 'RATE_LIMITED',
      message: '429 slow down',
      retriable: true,
      retryAfterSeconds: 7,
      details: { status: 429 },
    });
    const reset = Object.assign(new Error('gone'), { code: 'ECONNRESET' });
    expect(toAttemptError(reset)).toEqual({
      code: 'UNAVAILABLE',
      message: 'gone',
      retriable: true,
      details: { code: 'ECONNRESET' },
    });
    expect(toAttemptError({ status: 503 })).toEqual({
      code: 'UNAVAILABLE',
      message: '{"status":503}',
      retriable: true,
      details: { status: 503 },
    });
  });

  describe('R-RE9: what an error says in our terms wins over the answer that it carries', () => {
    const headers = { 'retry-after': '7' };
    const answered = { status: 429, headers };
    const answer = Object.assign(new Error('no'), answered);

    it.each<[string, Error, object]>([
      [
        'NonRetriableError',
        new NonRetriableError('out of quota', { cause: answer }),
        { code: 'NON_RETRIABLE', message: 'out of quota', retriable: false },
      ],
      [
        'RetryAfterError',
        new RetryAfterError(3, 'busy', { cause: answer }),
        { code: 'RETRY_AFTER', message: 'busy', retriable: true, retryAfterSeconds: 3 },
      ],
      [
        'a code of ours',
        Object.assign(new Error('no'), { ...answered, code: 'TIMEOUT' }),
        { code: 'TIMEOUT', message: 'no', retriable: true },
      ],
      [
        'retriable',
        Object.assign(new Error('no'), { ...answered, code: 'MINE', retriable: false }),
        { code: 'MINE', message: 'no', retriable: false },
      ],
      [
        'its own time and details',
        Object.assign(new Error('no'), { ...answered, retryAfterSeconds: 1, details: { n: 1 } }),
        {
          code: 'RATE_LIMITED',
          message: 'no',
          retriable: true,
          retryAfterSeconds: 1,
          details: { status: 429, n: 1 },
        },
      ],
    ])('%s', (_, error, expected) => {
      expect(toAttemptError(error)).toEqual(expected);
    });

    it('but what it leaves open is taken from there', () => {
      expect(toAttemptError(new RateLimitedError(undefined, 'busy', { cause: answer }))).toEqual({
        code: 'RATE_LIMITED',
        message: 'busy',
        retriable: true,
        retryAfterSeconds: 7,
        details: { status: 429 },
      });
    });
  });

  it('UnavailableError says what it is, and for how long if that is known', () => {
    expect(toAttemptError(new UnavailableError())).toEqual({
      code: 'UNAVAILABLE',
      message: 'The service is not available',
      retriable: true,
    });
    expect(toAttemptError(new UnavailableError('in the dock', { seconds: 90 }))).toMatchObject({
      message: 'in the dock',
      retryAfterSeconds: 90,
    });
  });

  it('an error of another copy of this module, or of the user, says the same', () => {
    const own = Object.assign(new Error('no'), { retriable: false, retryAfterSeconds: 3 });
    expect(toAttemptError(own)).toMatchObject({ retriable: false, retryAfterSeconds: 3 });
    const odd = Object.assign(new Error('no'), { retryAfterSeconds: -1, details: { n: 1n } });
    expect(toAttemptError(odd)).toEqual({ code: 'ERROR', message: 'no', retriable: true });
  });

  it.each([
    ['a string', 'broken', 'broken'],
    ['nothing', undefined, 'undefined'],
    ['an object', { reason: 500 }, '{"reason":500}'],
    ['null', null, 'null'],
    ['a frozen object', Object.freeze({ a: 1 }), '{"a":1}'],
    ['a function', () => 1, '[object Function]'],
    ['a symbol', Symbol('s'), '[object Symbol]'],
    ['a BigInt', 1n, '[object BigInt]'],
  ])('whatever is thrown has a message: %s', (_, thrown, message) => {
    expect(toAttemptError(thrown)).toEqual({ code: 'ERROR', message, retriable: true });
  });

  it.each([
    [
      'a getter',
      Object.defineProperty(new Error('no'), 'details', {
        get: () => {
          throw new Error('not even this');
        },
      }),
    ],
    [
      'a proxy',
      new Proxy(new Error('no'), {
        getPrototypeOf: () => {
          throw new Error('not even this');
        },
      }),
    ],
  ])('what can not even be read is an error too: %s that throws', (_, thrown) => {
    expect(toAttemptError(thrown)).toEqual({
      code: 'ERROR',
      message: 'What was thrown can not be read',
      retriable: true,
    });
  });

  it('an error that was overwritten is read as far as it makes sense', () => {
    const odd = Object.assign(new Error('no'), { message: { a: 1 }, name: 7 });
    expect(toAttemptError(odd)).toMatchObject({ message: '7', retriable: true });
  });

  it('what the server would refuse does not cost the report: delays are cut, details left out', () => {
    expect(toAttemptError(new RetryAfterError(1e12))).toMatchObject({
      retryAfterSeconds: 31_536_000,
    });
    const years = { status: 429, headers: { 'retry-after': '9'.repeat(400) } };
    expect(toAttemptError(years)).toMatchObject({ retryAfterSeconds: 31_536_000 });
    const wordy = new NonRetriableError('no', { details: 'x'.repeat(300_000) });
    expect(toAttemptError(wordy)).not.toHaveProperty('details');
  });

  it('a message is cut to what is kept', () => {
    expect(toAttemptError(new Error('x'.repeat(20_000))).message).toHaveLength(10_000);
  });
});
