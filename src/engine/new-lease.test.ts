import { describe, expect, it } from 'vitest';
import { isUuid } from '../domain/ids.js';
import { grantIn } from '../domain/lease.js';
import { newLease } from './new-lease.js';

describe('new leases', () => {
  it('are all different, also of one taking', () => {
    const leases = Array.from({ length: 2_000 }, () => newLease('1.2'));
    expect(new Set(leases.map((lease) => lease.slice(18))).size).toBe(2_000);
    expect(leases.every((lease) => isUuid(lease) && grantIn(lease) === '1.2')).toBe(true);
  });
});
