import { describe, expect, it } from 'vitest';
import { keyHash, keyIdIn, newKeyText, storedHash } from './key-text.js';

describe('the text of a key', () => {
  it('R-AD6: is one word with its id in it, never the same', () => {
    const keys = Array.from({ length: 200 }, () => newKeyText());
    for (const { id, text } of keys) {
      expect(text).toMatch(/^sluice_[0-9a-z]{12}_[0-9A-Za-z]{38}$/);
      expect(keyIdIn(text)).toBe(id);
    }
    expect(new Set(keys.map(({ text }) => text)).size).toBe(200);
  });

  it('R-AD6: one wrong character is noticed without looking anywhere', () => {
    const { text } = newKeyText();
    for (let at = 0; at < text.length; at++) {
      const wrong = text.charAt(at) === 'x' ? 'y' : 'x';
      expect(keyIdIn(text.slice(0, at) + wrong + text.slice(at + 1))).toBeNull();
    }
  });

  it.each(['', 'sluice_', 'Bearer x', `${newKeyText().text} `, newKeyText().text.slice(1)])(
    'does not take %j for a key',
    (text) => {
      expect(keyIdIn(text)).toBeNull();
    },
  );

  it('has a hash of 256 bits that does not hold it', () => {
    const { text } = newKeyText();
    expect(keyHash(text)).toHaveLength(32);
    expect(keyHash(text)).not.toEqual(keyHash(newKeyText().text));
  });

  it('R-AD7: a hash that is kept keeps nothing else', () => {
    const hash = keyHash(newKeyText().text);
    const kept = storedHash(hash.toString('hex'));
    expect(kept).toEqual(hash);
    expect(kept.buffer.byteLength).toBe(32);
  });
});
