import { describe, expect, it } from 'vitest';
import { NonRetriableError, RateLimitedError, RetryAfterError, toAttemptError } from './errors.js';

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
    const reset = Object.assign(new Error('gone'), { code: 'ECONNRESET' });
    expect(toAttemptError(reset)).toMatchObject({ code: 'ECONNRESET' });
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

  it('an error of another copy of this module, or of the user, says the same', () => {
    const own = Object.assign(new Error('no'), { retriable: false, retryAfterSeconds: 3 });
    expect(toAttemptError(own)).toMatchObject({ retriable: false, retryAfterSeconds: 3 });
    const odd = Object.assign(new Error('no'), { retryAfterSeconds: -1, details: { n: 1n } });
    expect(toAttemptError(odd)).toEqual({ code: 'ERROR', message: 'no', retriable: true });
  });

  it.each([
    ['a string', 'broken', 'broken'],
    ['nothing', undefined, 'undefined'],
    ['an object', { status: 500 }, '{"status":500}'],
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
    const wordy = new NonRetriableError('no', { details: 'x'.repeat(300_000) });
    expect(toAttemptError(wordy)).not.toHaveProperty('details');
  });

  it('a message is cut to what is kept', () => {
    expect(toAttemptError(new Error('x'.repeat(20_000))).message).toHaveLength(10_000);
  });
});
