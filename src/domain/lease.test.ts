import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isUuid } from './ids.js';
import { grantGenerations, grantIn, leaseNaming } from './lease.js';

const digits = 'bcdef0123456789';

describe('leases that name their taking', () => {
  it('R-CH6: whoever has the lease knows the grant', () => {
    const grants = fc.record({
      generation: fc.integer({ min: 0, max: grantGenerations - 1 }),
      number: fc.integer({ min: 0, max: 2 ** 44 - 1 }),
    });
    fc.assert(
      fc.property(grants, ({ generation, number }) => {
        const grant = `${generation}.${number}`;
        const lease = leaseNaming(grant, digits);
        expect(isUuid(lease)).toBe(true);
        expect(grantIn(lease)).toBe(grant);
      }),
    );
  });

  it('have the random digits at the end', () => {
    expect(leaseNaming('258.1', digits)).toBe('01020000-0000-8001-8bcd-ef0123456789');
  });

  it.each(['', '1', '.1', 'none', '1.x', '65536.1', `1.${2 ** 44}`, '1.1.1', '-1.1'])(
    'there is none for a grant like %j',
    (grant) => expect(() => leaseNaming(grant, digits)).toThrow(RangeError),
  );
});
