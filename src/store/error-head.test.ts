import fc from 'fast-check';
import { expect, it } from 'vitest';

import { readErrorHead } from './error-head.js';

it('reads code and message of a stored error, wherever it was cut off', () => {
  const hostile = fc.string({ unit: 'binary', maxLength: 30 });
  fc.assert(
    fc.property(hostile, hostile, fc.nat(100), (code, message, length) => {
      const stored = JSON.stringify({ code, message, retriable: true, details: { code: 'other' } });
      expect(readErrorHead(stored)).toEqual({ code, message });
      const cut = readErrorHead(stored.slice(0, length));
      expect(message.startsWith(cut.message)).toBe(true);
    }),
  );
  expect(readErrorHead(null)).toEqual({ code: 'unknown', message: '' });
});
