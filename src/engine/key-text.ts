import { createHash, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';

const digits = '0123456789';
const small = 'abcdefghijklmnopqrstuvwxyz';
const base62 = digits + small + small.toUpperCase();
const idLength = 12;
/** 32 of 62 characters: 190 bits that nobody guesses. */
const secretLength = 32;
/** As many as 32 bits need. */
const checksumLength = 6;

const pattern = new RegExp(
  `^(sluice_([0-9a-z]{${idLength}})_[0-9A-Za-z]{${secretLength}})([0-9A-Za-z]{${checksumLength}})$`,
);

export interface KeyText {
  readonly id: string;
  /** `sluice_<id>_<secret><checksum>`: one word, which scanners for leaked secrets can find. */
  readonly text: string;
}

export function newKeyText(): KeyText {
  const id = randomText(idLength, digits + small);
  const body = `sluice_${id}_${randomText(secretLength, base62)}`;
  return { id, text: body + checksum(body) };
}

/** Null: it is no key, or was mistyped. Nothing was looked up to know it. */
export function keyIdIn(text: string): string | null {
  const [, body = '', id = '', check] = pattern.exec(text) ?? [];
  return check !== undefined && check === checksum(body) ? id : null;
}

/**
 * A secret this long needs no slow hash: there is no dictionary to try. That of a confined key is another
 * one, so that servers of the version before, which know no confinement, refuse it.
 */
export function keyHash(text: string, ofConfined = false): Buffer {
  return createHash('sha256')
    .update(ofConfined ? `confined:${text}` : text)
    .digest();
}

/** As it is stored. A buffer of its own: a slice of the pool would keep all 8 KB of it. */
export function storedHash(hex: string): Buffer {
  const bytes = Buffer.alloc(hex.length / 2);
  bytes.write(hex, 'hex');
  return bytes;
}

function randomText(length: number, alphabet: string): string {
  return Array.from({ length }, () => alphabet.charAt(randomInt(alphabet.length))).join('');
}

function checksum(body: string): string {
  let rest = crc32(body);
  let text = '';
  while (text.length < checksumLength) {
    text = base62.charAt(rest % base62.length) + text;
    rest = Math.floor(rest / base62.length);
  }
  return text;
}
