import type { Lease } from './ids.js';

/** What a grant says of its generation: the rest of it would take digits of the lease. */
export const grantGenerations = 0x1_0000;
const grantNumbers = 2 ** 44;

/**
 * A lease that names the taking it came from, so that whoever ends the attempt, on whichever server, can say
 * which slot is to be freed: a UUIDv8 of 16 bits of generation, 44 of the number, and 60 that nobody can
 * guess, from 15 random hexadecimal digits.
 */
export function leaseNaming(grant: string, digits: string): Lease {
  const head = headNaming(grant);
  // Joined, it is one text; added to each other, all of them would be kept as long as it is.
  return [head, '-8', digits.slice(0, 3), '-', digits.slice(3, 15)].join('') as Lease;
}

let lastGrant = '';
let lastHead = '';

/** All that one take granted have the same. */
function headNaming(grant: string): string {
  if (grant === lastGrant) return lastHead;
  const [, generation, number] = /^(\d+)\.(\d+)$/.exec(grant)?.map(Number) ?? [];
  const isNamed =
    generation !== undefined &&
    number !== undefined &&
    generation < grantGenerations &&
    number < grantNumbers;
  if (!isNamed) throw new RangeError(`a lease can't name the grant ${JSON.stringify(grant)}`);
  lastGrant = grant;
  return (lastHead = headOf(hex(generation, 4) + hex(number, 11)));
}

function headOf(digits: string): string {
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-8${digits.slice(12)}`;
}

export function grantIn(lease: Lease): string {
  const generation = Number.parseInt(lease.slice(0, 4), 16);
  const number = Number.parseInt(lease.slice(4, 8) + lease.slice(9, 13) + lease.slice(15, 18), 16);
  return `${generation}.${number}`;
}

/**
 * The number of the first taking that these leases of one generation came from. Leases sort as their
 * takings do: the numbers come first and have as many digits. 0: it is not known.
 */
export function oldestGrantNumber(leases: readonly Lease[]): number {
  let oldest = leases[0];
  if (oldest === undefined) return 0;
  for (const lease of leases) if (lease < oldest) oldest = lease;
  return Number(grantIn(oldest).split('.')[1]);
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}
