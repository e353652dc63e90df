import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isUuid, type Lease } from './ids.js';
import { grantGenerations, grantIn, leaseNaming } from './lease.js';

describe('leases that name their taking', () => {
  it('R-CH6: whoever has the lease knows the grant', () => {
    const grants = fc.record({
      generation: fc.integer({ min: 0, max: grantGenerations - 1 }),
      number: fc.integer({ min: 0, max: 2 ** 44 - 1 }),
    });
    fc.assert(
      fc.property(grants, ({ generation, number }) => {
        const grant = `${generation}.${number}`;
        const lease = leaseNaming(grant, randomUUID());
        expect(isUuid(lease)).toBe(true);
        expect(grantIn(lease)).toBe(grant);
      }),
    );
  });

  it('keeps the random half of the UUID', () => {
    const random = 'aaaaaaaa-aaaa-4aaa-9bcd-ef0123456789';
    expect(leaseNaming('258.1', random)).toBe('01020000-0000-8001-9bcd-ef0123456789');
  });

  it.each(['', '1', '.1', 'none', '1.x', '65536.1', `1.${2 ** 44}`, '1.1.1', '-1.1'])(
    'names no grant like %j',
    (grant) => {
      const random = randomUUID();
      expect(leaseNaming(grant, random)).toBe(random);
      expect(grantIn(random as string as Lease)).toBeUndefined();
    },
  );
});
