import { randomBytes } from 'node:crypto';
import type { Lease } from '../domain/ids.js';
import { leaseNaming } from '../domain/lease.js';

const digitsEach = 15;
/** So many leases' worth are fetched at once: one by one, they would take five times as long. */
const fetched = 256;

let digits = '';
let next = 0;

/** Of the taking with this grant. */
export function newLease(grant: string): Lease {
  if (next >= digits.length) {
    digits = randomBytes((digitsEach * fetched) / 2).toString('hex');
    next = 0;
  }
  const from = next;
  next += digitsEach;
  return leaseNaming(grant, digits.slice(from, next));
}
