import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareVersions } from './version.js';

const ascending = [
  ...['0.9', '1.0.0-alpha', '1.0.0-alpha.1', '1.0.0-alpha.beta', '1.0.0-beta.2', '1.0.0-beta.11'],
  ...['1.0.0-rc.1', '1.0.0', '1.0.1', '1.9', '1.10', 'v2', '2.0.0.1', '20251118', '20251118.2'],
];

describe('the order of versions', () => {
  it('goes by numbers, and a pre-release comes before its release', () => {
    for (const [place, older] of ascending.entries()) {
      for (const newer of ascending.slice(place + 1)) {
        expect([older, newer, compareVersions(older, newer)]).toEqual([
          ...[older, newer],
          expect.toSatisfy((order: number) => order < 0),
        ]);
        expect(compareVersions(newer, older)).toBeGreaterThan(0);
      }
    }
  });

  it('takes what is not written for 0, and does not look at what built it', () => {
    expect(compareVersions('1.2', 'v1.2.0')).toBe(0);
    expect(compareVersions('1.2.0+linux', '1.2.0+mac')).toBe(0);
    expect(compareVersions('9007199254740993', '9007199254740992')).toBeGreaterThan(0);
  });

  it('is null where there is none: hashes, words', () => {
    expect(compareVersions('4f2ca91', '1.0.0')).toBeNull();
    expect(compareVersions('main', 'release')).toBeNull();
    expect(compareVersions('main', 'main')).toBe(0);
  });

  it('turns round when the two are swapped, whatever they are', () => {
    const version = fc.stringMatching(/^v?[0-9]{1,3}(\.[0-9]{1,3}){0,3}(-[0-9a-b.]{1,4})?$/);
    fc.assert(
      fc.property(version, version, (one, other) => {
        const [there, back] = [compareVersions(one, other), compareVersions(other, one)];
        expect(there === null ? null : Math.sign(there) + 0).toBe(
          back === null ? null : 0 - Math.sign(back),
        );
      }),
    );
  });
});
