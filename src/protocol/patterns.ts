import { bounds } from './bounds.js';

/** A name is a path segment of the API, and "." or ".." would be resolved away by every client. */
export const namePattern = `^(?!\\.{1,2}$)[A-Za-z0-9._:/-]{1,${bounds.nameLength}}$`;
export const nameOrAnyPattern = `^(\\*|(?!\\.{1,2}$)[A-Za-z0-9._:/-]{1,${bounds.nameLength}})$`;
export const namePrefixPattern = `^(\\*|(?!\\.{1,2}$)[A-Za-z0-9._:/-]{1,${bounds.nameLength}}\\*?)$`;
/** Postgres text holds neither NUL nor half of a surrogate pair. */
export const textPattern = '^[^\\u0000\\p{Cs}]*$';
/** An index row in Postgres ends at 2,704 bytes, and a task's capabilities are part of one. */
export const labelPattern = '^[!-~]{1,64}$';
export const uuidPattern =
  '^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$';
/** Of W3C trace context, version 00. Neither id may be all zeros. */
export const traceparentPattern = '^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$';
export const tokenPattern = '^[A-Za-z0-9_.~=-]+$';

/** What a refusal says instead of showing a regular expression; the others are in pattern-meanings.ts. */
export const nameMeaning = `must be 1 to ${bounds.nameLength} of A-Z a-z 0-9 . _ : / -`;
export const labelMeaning = 'must be 1 to 64 printable ASCII characters without spaces';
export const uuidMeaning = 'must be a UUID';
