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
export const tokenPattern = '^[A-Za-z0-9_.~=-]+$';

/** What a refusal says instead of showing a regular expression. */
export const patternMeanings: ReadonlyMap<string, string> = new Map([
  [namePattern, `must be 1 to ${bounds.nameLength} of A-Z a-z 0-9 . _ : / -`],
  [nameOrAnyPattern, `must be "*", or 1 to ${bounds.nameLength} of A-Z a-z 0-9 . _ : / -`],
  [
    namePrefixPattern,
    `must be 1 to ${bounds.nameLength} of A-Z a-z 0-9 . _ : / -, and may end with "*"`,
  ],
  [textPattern, 'must not hold NUL or half of a surrogate pair'],
  [labelPattern, 'must be 1 to 64 printable ASCII characters without spaces'],
  [uuidPattern, 'must be a UUID'],
  [tokenPattern, 'must be a token that this server gave'],
]);
