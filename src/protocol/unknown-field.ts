import { findMeant } from '../domain/did-you-mean.js';

/** What is said of a field that a request may not have, the same over HTTP and in TypeScript. */
export function unknownField(name: string, known: readonly string[]): string {
  const meant = findMeant(name, known);
  return meant === null ? 'is not a known field' : `is not a known field: did you mean "${meant}"?`;
}

/** One segment of a JSON pointer. */
export function pointerSegment(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
