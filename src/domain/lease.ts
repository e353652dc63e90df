import type { Lease } from './ids.js';

/** What a grant says of its generation: the rest of it would take digits of the lease. */
export const grantGenerations = 0x1_0000;
const grantNumbers = 2 ** 44;

/**
 * A lease that names the taking it came from, so that whoever ends the attempt, on whichever server, can say
 * which slot is to be freed: a UUIDv8 of 16 bits of generation, 44 of the number, and 62 that nobody can
 * guess, from a random UUID. A grant that has no such numbers is not named, and the UUID stays as it is.
 */
export function leaseNaming(grant: string, random: string): Lease {
  const dot = grant.indexOf('.');
  const generation = Number(grant.slice(0, dot));
  const number = Number(grant.slice(dot + 1));
  const isNamed = dot > 0 && isBelow(generation, grantGenerations) && isBelow(number, grantNumbers);
  if (!isNamed) return random as Lease;
  const digits = hex(generation, 4) + hex(number, 11);
  const head = `${digits.slice(0, 8)}-${digits.slice(8, 12)}-8${digits.slice(12)}`;
  // Joined, it is one text; added to each other, both would be kept as long as it is.
  return [head, random.slice(18)].join('') as Lease;
}

/** Undefined: it names none. */
export function grantIn(lease: Lease): string | undefined {
  if (lease[14] !== '8') return undefined;
  const generation = Number.parseInt(lease.slice(0, 4), 16);
  const number = Number.parseInt(lease.slice(4, 8) + lease.slice(9, 13) + lease.slice(15, 18), 16);
  return `${generation}.${number}`;
}

function isBelow(value: number, end: number): boolean {
  return Number.isInteger(value) && value >= 0 && value < end;
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}
