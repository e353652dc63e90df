import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NotJsonError, TooLargeError, toJson } from './to-json.js';

describe('toJson', () => {
  it('agrees with JSON.stringify on everything that is JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(toJson(value)).toStrictEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it('nothing is null, an absent field stays absent, a date is its text', () => {
    expect(toJson(undefined)).toBeNull();
    expect(toJson({ a: undefined, b: [undefined] })).toStrictEqual({ b: [null] });
    expect(toJson({ at: new Date(0) })).toStrictEqual({ at: '1970-01-01T00:00:00.000Z' });
  });

  it('negative zero is zero, as it will be read again', () => {
    expect(toJson({ a: -0 })).toStrictEqual({ a: 0 });
  });

  it('the same object twice is no cycle', () => {
    const shared = { a: 1 };
    expect(toJson([shared, shared])).toStrictEqual([{ a: 1 }, { a: 1 }]);
  });

  it.each([
    ['a BigInt', { count: 1n }, 'A BigInt at /count is not JSON'],
    ['a function', { a: [() => 1] }, 'A function at /a/0 is not JSON'],
    ['a symbol', Symbol('x'), 'A symbol is not JSON'],
    ['not a number', { rate: NaN }, 'NaN at /rate is not JSON'],
  ])('refuses %s and says where', (_, value, message) => {
    expect(() => toJson(value)).toThrow(new NotJsonError(message));
  });

  it('refuses a cycle and says where', () => {
    const value: { self?: unknown } = {};
    value.self = { value };
    expect(() => toJson(value)).toThrow('A value that contains itself at /self/value is not JSON');
  });

  it('toJSON is asked once, and may answer with the object itself', () => {
    class Self {
      readonly a = 1;
      toJSON(): this {
        return this;
      }
    }
    expect(toJson({ self: new Self() })).toStrictEqual({ self: { a: 1 } });
  });

  it('never refuses as too large what fits', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const bytes = Buffer.byteLength(JSON.stringify(value));
        expect(toJson(value, bytes)).toStrictEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it.each([
    ['a long text', 'x'.repeat(10_001)],
    ['many items', Array.from({ length: 10_001 }, () => 1)],
    ['an array of holes', new Array(2 ** 32 - 1)],
    ['many keys', Object.fromEntries(Array.from({ length: 10_001 }, (_, i) => [String(i), 1]))],
    ['bytes', new Uint8Array(1e9)],
    ['a buffer', Buffer.allocUnsafe(1e9)],
  ])('refuses %s that is larger than allowed, without copying it first', (_, value) => {
    expect(() => toJson({ value }, 10_000)).toThrow(TooLargeError);
  });
});
