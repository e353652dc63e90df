import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { maxPatternLength, normaliseMessage } from './message-pattern.js';

/** Texts with what the normaliser looks for, in any order, so that every rule meets every other. */
const piece = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 8 }),
  fc.uuid(),
  fc.integer().map(String),
  fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
  fc.webUrl({ withQueryParameters: true, withFragments: true }),
  fc.constantFrom(
    '"',
    "'",
    '`',
    ' ',
    '://',
    '?',
    '#',
    '<',
    '>',
    '0x',
    "can't",
    '\ud800',
    '\u0000',
    '2026-01-31',
    '12:30:05',
    '-',
    '_',
  ),
);
const message = fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join(''));

describe('R-OB10: a normalised message', () => {
  it.each([
    ['task 018f2b6e-7c1d-7e5a-9a35-2f1b3c4d5e6f not found', 'task <uuid> not found'],
    ['timed out after 30000 ms', 'timed out after <n> ms'],
    ['timed out after 12.5s (attempt 3 of 5)', 'timed out after <n>.<n>s (attempt <n> of <n>)'],
    ['no such file "/tmp/a b.txt"', 'no such file <text>'],
    ["model 'gpt-4o' can't be used", "model <text> can't be used"],
    [
      'GET https://api.example.com/v1/users/42?page=3 failed',
      'GET https://api.example.com/<id>/users/<id>?<query> failed',
    ],
    ['at 2026-01-31T12:30:05.123Z: refused', 'at <time>: refused'],
    ['at 2026-01-31 12:30:05+01:00 refused', 'at <time> refused'],
    ['segfault at 0x7ffe12ab, block deadbeef01', 'segfault at <hex>, block <hex>'],
    ['request req_01HXYZ9A8B7C of user42', 'request req_<id> of user<n>'],
    ['  many\n\n lines\tof  text ', 'many lines of text'],
    ['Überlauf bei 7 Größen', 'Überlauf bei <n> Größen'],
    ['', ''],
  ])('of %j is %j', (text, normalised) => {
    expect(normaliseMessage(text)).toBe(normalised);
  });

  it('is bounded, storable as text and the same when normalised again, whatever the message', () => {
    fc.assert(
      fc.property(fc.oneof(message, fc.string({ unit: 'binary' })), (text) => {
        const once = normaliseMessage(text);
        expect(once.length).toBeLessThanOrEqual(maxPatternLength);
        expect(Buffer.from(once).toString()).toBe(once);
        expect(once).not.toContain('\u0000');
        expect(normaliseMessage(once)).toBe(once);
      }),
      { numRuns: 5_000 },
    );
  });

  it('does not depend on the numbers and ids in it', () => {
    fc.assert(
      fc.property(fc.nat(), fc.nat(), fc.uuid(), fc.uuid(), (n, m, one, other) => {
        const told = (number: number, id: string) => `row ${number} of ${id}: HTTP ${number}`;
        expect(normaliseMessage(told(n, one))).toBe(normaliseMessage(told(m, other)));
      }),
    );
  });

  it('reads a bounded beginning of a long message, however it is made up', () => {
    const reads: number[] = [];
    for (const unit of ['"', "'a ", '0', 'a-', 'http://', '2026-01-31 ', 'deadbeef', '\ud800']) {
      const long = unit.repeat(1_000_000 / unit.length);
      expect(normaliseMessage(long)).toBe(normaliseMessage(long.slice(0, 2_000)));
      reads.push(long.length);
    }
    expect(reads).toHaveLength(8);
  });
});
