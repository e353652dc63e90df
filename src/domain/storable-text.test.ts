import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { storableText } from './storable-text.js';

describe('a text for Postgres', () => {
  it('ends with a whole character', () => {
    expect(storableText('aaa😀', 4)).toBe('aaa');
    expect(storableText('aaa😀', 5)).toBe('aaa😀');
    expect(storableText('aaa', 4)).toBe('aaa');
  });

  it('holds neither NUL nor half of a pair', () => {
    expect(storableText('a\0b\ud83dc\ude00', 10)).toBe('a\ufffdb\ufffdc\ufffd');
  });

  it('survives UTF-8, is bounded, and stays as it is when it is cut again', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.nat(20), (text, maxLength) => {
        const stored = storableText(text, maxLength);
        expect(Buffer.from(stored).toString()).toBe(stored);
        expect(stored).not.toContain('\0');
        expect(stored.length).toBeLessThanOrEqual(maxLength);
        expect(storableText(stored, maxLength)).toBe(stored);
      }),
    );
  });
});
